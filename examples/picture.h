// RGB pixels from and to files, for the examples. One source file of a program includes this.
#ifndef QUOLL_EXAMPLES_PICTURE_H
#define QUOLL_EXAMPLES_PICTURE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <vector>

#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>

struct Picture {
    int w, h;
    std::vector<unsigned char> rgb;
};

// False after a message.
inline bool read_picture(const char* path, Picture* picture) {
    int channels;
    FILE* const fp = fopen(path, "rb");
    unsigned char* const pixels =
        fp ? stbi_load_from_file(fp, &picture->w, &picture->h, &channels, 3) : nullptr;
    if (!pixels)
        fprintf(stderr, "%s cannot be read: %s\n", path,
                !fp || ferror(fp) ? strerror(errno) : stbi_failure_reason());
    if (fp) fclose(fp);
    if (!pixels) return false;
    picture->rgb.assign(pixels, pixels + (size_t)picture->w * picture->h * 3);
    stbi_image_free(pixels);
    return true;
}

// stbi_write_png does not say when a disk is full.
inline bool write_picture(const char* path, const Picture& picture) {
    const int w = picture.w, h = picture.h;
    std::vector<unsigned char> png;
    const auto append = [](void* to, void* data, int size) {
        std::vector<unsigned char>* bytes = (std::vector<unsigned char>*)to;
        bytes->insert(bytes->end(), (unsigned char*)data, (unsigned char*)data + size);
    };
    bool written = stbi_write_png_to_func(append, &png, w, h, 3, picture.rgb.data(), 3 * w) != 0;
    FILE* const fp = written ? fopen(path, "wb") : nullptr;
    written = fp && fwrite(png.data(), 1, png.size(), fp) == png.size();
    if (fp && fclose(fp) != 0) written = false;
    if (!written) fprintf(stderr, "%s cannot be written\n", path);
    return written;
}

#endif
