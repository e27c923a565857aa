#include "image_file.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/model_files.h"
#include "image/safe_for_stb.h"
#include "quoll/image.h"
#include "quoll/log.h"
#include "quoll/status.h"

// stb_image takes memory for what a chunk's head says, and for what a compressed stream makes,
// which may be a thousand times the file. None of its blocks may have more bytes than this.
static thread_local size_t largest_block;

// Zeros: a JPEG may use tables that it does not define.
static void* limited_malloc(size_t size) {
    return size <= largest_block ? calloc(1, size) : nullptr;
}
static void* limited_realloc(void* block, size_t size) {
    return size <= largest_block ? realloc(block, size) : nullptr;
}

#define STBI_MALLOC(size) limited_malloc(size)
#define STBI_REALLOC(block, size) limited_realloc(block, size)
#define STBI_FREE(block) free(block)
#define STBI_NO_PSD
#define STBI_NO_HDR
#define STBI_NO_PIC
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

// For a picture of so many pixels: 4 channels of 16 bits, and several frames.
static size_t block_for(size_t file, double pixels) {
    return ((size_t)1 << 20) + 2 * file + (size_t)std::min(64 * pixels, (double)(SIZE_MAX / 4));
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

// All that a file has.
static std::vector<unsigned char> bytes_of(FILE* fp) {
    std::vector<unsigned char> bytes;
    unsigned char part[4096];
    for (size_t got; (got = fread(part, 1, sizeof(part), fp)) > 0;)
        bytes.insert(bytes.end(), part, part + got);
    return bytes;
}

// The orientation of the picture according to EXIF, 1 to 8 of the TIFF tag Orientation; 1 if it has
// none. p: a TIFF file of `size` bytes.
static int orientation_of(const unsigned char* p, size_t size) {
    const auto number = [&](size_t at, size_t bytes) {
        size_t value = 0;
        for (size_t i = 0; i < bytes; i++)
            value |= (size_t)p[at + i] << 8 * (p[0] == 'I' ? i : bytes - 1 - i);
        return value;
    };
    if (size < 8 || (p[0] != 'I' && p[0] != 'M') || p[1] != p[0] || number(2, 2) != 42) return 1;
    const size_t tags = number(4, 4);
    if (tags > size - 2) return 1;
    for (size_t i = 0, at = tags + 2; i < number(tags, 2) && at + 12 <= size; i++, at += 12) {
        const size_t value = number(at + 8, 2);
        if (number(at, 2) == 0x112) return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

// The orientation of a JPEG, from its segment APP1.
static int exif_orientation(const std::vector<unsigned char>& bytes) {
    const size_t start = jpeg_start(bytes);
    for (size_t at = start + 1; start && at + 4 <= bytes.size() && bytes[at] == 0xff;) {
        const unsigned char marker = bytes[at + 1];
        const size_t end = at + 2 + bytes[at + 2] * 256u + bytes[at + 3];
        if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xda) || end > bytes.size()) return 1;
        if (marker == 0xe1 && end >= at + 10 && memcmp(&bytes[at + 4], "Exif\0", 6) == 0)
            return orientation_of(&bytes[at + 4] + 6, end - at - 10);
        at = end;
    }
    return 1;
}

// Upright, as viewers and OpenCV show it.
static int turn(int orientation, Image* image) {
    Image turned;
    turned.w = orientation >= 5 ? image->h : image->w;
    turned.h = orientation >= 5 ? image->w : image->h;
    turned.rgb.resize(image->rgb.size());
    QUOLL_RETURN_IF_ERROR(kanna_rotate_c3(image->rgb.data(), image->w, image->h, turned.rgb.data(),
                                          turned.w, turned.h, orientation));
    *image = std::move(turned);
    return kOk;
}

int read_image(const std::string& path, Image* image) {
    const auto fail = [&](const char* why) {
        QUOLL_LOGE("[image %s] cannot be read: %s", path.c_str(), why);
        return kError;
    };
    int channels = 0;
    image->w = image->h = 0;
    const std::unique_ptr<FILE, int (*)(FILE*)> fp(fopen(path.c_str(), "rb"), fclose);
    if (!fp) return fail(strerror(errno));
    std::vector<unsigned char> bytes = bytes_of(fp.get());
    if (ferror(fp.get())) return fail(strerror(errno));
    rewind(fp.get());
    const int orientation = exif_orientation(bytes);  // which goes next
    if (const char* const why = make_safe_for_stb(&bytes)) return fail(why);
    if (bytes.size() > INT_MAX) return fail("it has more than 2 GB");
    const int size = (int)bytes.size();
    largest_block = block_for(bytes.size(), 0);
    if (stbi_info_from_memory(bytes.data(), size, &image->w, &image->h, &channels) &&
        !plausible(fp.get(), image->w, image->h, channels)) {
        QUOLL_LOGE("[image %s] cannot be read: the file has no %d x %d pixels", path.c_str(),
                   image->w, image->h);
        return kError;
    }
    // stb_image makes 8 bits of them as if it had made 16 before, and reads behind their end.
    if (size > 0 && bytes[0] == 'P' && stbi_is_16_bit_from_memory(bytes.data(), size))
        return fail("a PNM of 16 bits a channel, expected 8");
    largest_block = block_for(bytes.size(), (double)image->w * image->h);
    const std::unique_ptr<unsigned char, void (*)(void*)> pixels(
        stbi_load_from_memory(bytes.data(), size, &image->w, &image->h, &channels, 3),
        stbi_image_free);
    if (!pixels) {
        const char* const why = stbi_failure_reason();
        return fail(strcmp(why, "outofmem") == 0 ? "it asks for more memory than its pixels need"
                                                 : why);
    }
    image->rgb.assign(pixels.get(), pixels.get() + (size_t)image->w * image->h * 3);
    return orientation > 1 ? turn(orientation, image) : kOk;
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
