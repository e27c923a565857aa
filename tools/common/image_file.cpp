#include "image_file.h"

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

int read_image(const std::string& path, Image* image) {
    int channels = 0;
    unsigned char* pixels = stbi_load(path.c_str(), &image->w, &image->h, &channels, 3);
    if (!pixels) {
        QUOLL_LOGE("[image %s] cannot be read: %s", path.c_str(), stbi_failure_reason());
        return kError;
    }
    image->rgb.assign(pixels, pixels + (size_t)image->w * image->h * 3);
    stbi_image_free(pixels);
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
