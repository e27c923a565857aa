#include "image_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <memory>

#include "common/model_files.h"
#include "quoll/log.h"
#include "quoll/status.h"

#define STBI_MAX_DIMENSIONS (1 << 15)
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace quoll {

// Bytes that a PNM has behind its magic, three numbers and comments, for so many values.
static double pnm_bytes(FILE* fp, double values) {
    int most = 0;
    for (int i = 0; i < 3; i++) {
        while (fscanf(fp, " #%*[^\n]") != EOF) {
            const int next = fgetc(fp);
            ungetc(next, fp);
            if (next != '\n' && next != '#') break;
        }
        if (fscanf(fp, "%d", &most) != 1) break;
    }
    return (double)ftell(fp) + 1 + values * (most > 255 ? 2 : 1);
}

// Before memory is taken: more pixels than any compression makes of so many bytes are a lie, and a
// PNM, which stb_image does not check, has all of them.
static bool plausible(FILE* fp, int w, int h, int channels) {
    char magic[2] = {};
    const double pixels = (double)w * h;
    const bool pnm = fread(magic, 1, 2, fp) == 2 && magic[0] == 'P';
    const double need = pnm ? pnm_bytes(fp, pixels * channels) : pixels / 1e4 - 7;
    return w > 0 && h > 0 && (fseek(fp, 0, SEEK_END) != 0 || need <= (double)ftell(fp));
}

int read_image(const std::string& path, Image* image) {
    int channels = 0;
    const std::unique_ptr<FILE, int (*)(FILE*)> fp(fopen(path.c_str(), "rb"), fclose);
    if (fp && stbi_info_from_file(fp.get(), &image->w, &image->h, &channels) &&
        !plausible(fp.get(), image->w, image->h, channels)) {
        QUOLL_LOGE("[image %s] cannot be read: the file has no %d x %d pixels", path.c_str(),
                   image->w, image->h);
        return kError;
    }
    // stb_image makes 8 bits of them as if it had made 16 before, and reads behind their end.
    if (fp) rewind(fp.get());
    if (fp && fgetc(fp.get()) == 'P' && (rewind(fp.get()), stbi_is_16_bit_from_file(fp.get()))) {
        QUOLL_LOGE("[image %s] cannot be read: a PNM of 16 bits a channel, expected 8",
                   path.c_str());
        return kError;
    }
    if (fp) rewind(fp.get());
    const std::unique_ptr<unsigned char, void (*)(void*)> pixels(
        fp ? stbi_load_from_file(fp.get(), &image->w, &image->h, &channels, 3) : nullptr,
        stbi_image_free);
    if (!pixels) {
        QUOLL_LOGE("[image %s] cannot be read: %s", path.c_str(),
                   fp ? stbi_failure_reason() : strerror(errno));
        return kError;
    }
    image->rgb.assign(pixels.get(), pixels.get() + (size_t)image->w * image->h * 3);
    return kOk;
}

int write_png(const std::string& path, const Image& image, const std::vector<std::string>& inputs) {
    OutputFiles files(inputs);
    const std::string part = files.add(path);
    if (part.empty()) return kError;
    std::vector<unsigned char> png;
    const auto append = [](void* to, void* data, int size) {
        unsigned char* p = (unsigned char*)data;
        std::vector<unsigned char>* bytes = (std::vector<unsigned char>*)to;
        bytes->insert(bytes->end(), p, p + size);
    };
    if (!stbi_write_png_to_func(append, &png, image.w, image.h, 3, image.rgb.data(), image.w * 3)) {
        QUOLL_LOGE("[image %s] cannot be encoded", path.c_str());
        return kError;
    }
    return write_bytes(png, part, path) ? kError : files.commit();
}

}  // namespace quoll
