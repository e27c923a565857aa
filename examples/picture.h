// RGB pixels from and to files, for the examples. One source file of a program includes this.
#ifndef QUOLL_EXAMPLES_PICTURE_H
#define QUOLL_EXAMPLES_PICTURE_H

#include <stdio.h>

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
    unsigned char* pixels = stbi_load(path, &picture->w, &picture->h, &channels, 3);
    if (!pixels) {
        fprintf(stderr, "%s cannot be read: %s\n", path, stbi_failure_reason());
        return false;
    }
    picture->rgb.assign(pixels, pixels + (size_t)picture->w * picture->h * 3);
    stbi_image_free(pixels);
    return true;
}

inline bool write_picture(const char* path, const Picture& picture) {
    const int w = picture.w, h = picture.h;
    if (stbi_write_png(path, w, h, 3, picture.rgb.data(), 3 * w)) return true;
    fprintf(stderr, "%s cannot be written\n", path);
    return false;
}

#endif
