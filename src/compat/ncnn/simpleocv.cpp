// The images of <ncnn/simpleocv.h>: files by stb, drawing by quoll/image.h.
#define NCNN_SIMPLEOCV 1
#include "quoll/ncnn/simpleocv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/safe_for_stb.h"
#include "quoll/log.h"

// Zeros: a JPEG may use tables that it does not define.
#define STBI_MALLOC(size) calloc(1, size)
#define STBI_REALLOC(block, size) realloc(block, size)
#define STBI_FREE(block) free(block)

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace cv {

// RGB to BGR, or back.
static void swap_red_and_blue(uchar* pixels, size_t count, int channels) {
    for (size_t i = 0; i < count && channels >= 3; i++, pixels += channels)
        std::swap(pixels[0], pixels[2]);
}

static int wanted_channels(int flags) {
    return flags == IMREAD_GRAYSCALE ? 1 : flags == IMREAD_COLOR ? 3 : 0;
}

// `from`: for the message.
static Mat take_pixels(uchar* pixels, int w, int h, int channels, const char* from) {
    Mat m;
    if (!pixels) {
        QUOLL_LOGE("[imread] %s: %s", from, stbi_failure_reason());
        return m;
    }
    m.create(h, w, channels == 2 ? 1 : channels);
    if (!m.empty()) {
        if (channels == 2)  // grey and alpha
            for (size_t i = 0; i < m.total(); i++) m.data[i] = pixels[2 * i];
        else
            memcpy(m.data, pixels, m.total());
        swap_red_and_blue(m.data, (size_t)w * h, m.c);
    }
    stbi_image_free(pixels);
    return m;
}

// `from`: for the message.
static Mat decode(std::vector<uchar> bytes, int flags, const char* from) {
    int w = 0, h = 0, channels = 0;
    const int wanted = wanted_channels(flags);
    if (const char* const why = quoll::make_safe_for_stb(&bytes)) {
        QUOLL_LOGE("[imread] %s: %s", from, why);
        return Mat();
    }
    uchar* const pixels =
        stbi_load_from_memory(bytes.data(), (int)bytes.size(), &w, &h, &channels, wanted);
    return take_pixels(pixels, w, h, wanted ? wanted : channels, from);
}

Mat imread(const std::string& path, int flags) {
    FILE* const fp = fopen(path.c_str(), "rb");
    if (!fp) {
        QUOLL_LOGE("[imread] %s: %s", path.c_str(), strerror(errno));
        return Mat();
    }
    std::vector<uchar> bytes;
    uchar part[4096];
    for (size_t got; (got = fread(part, 1, sizeof(part), fp)) > 0;)
        bytes.insert(bytes.end(), part, part + got);
    fclose(fp);
    return decode(std::move(bytes), flags, path.c_str());
}

Mat imdecode(const std::vector<uchar>& buf, int flags) { return decode(buf, flags, "memory"); }

static std::string ending(const std::string& path) {
    const size_t dot = path.rfind('.');
    std::string text = dot == std::string::npos ? "" : path.substr(dot);
    for (char& c : text) c = (char)tolower((unsigned char)c);
    return text;
}

bool imwrite(const std::string& path, const Mat& m, const std::vector<int>& params) {
    const std::string kind = ending(path);
    int quality = 95;
    for (size_t i = 0; i + 1 < params.size(); i += 2)
        if (params[i] == IMWRITE_JPEG_QUALITY) quality = params[i + 1];
    bool written = false;
    Mat rgb = m.clone();
    if (!rgb.empty()) {
        swap_red_and_blue(rgb.data, (size_t)rgb.rows * rgb.cols, rgb.c);
        if (kind == ".jpg" || kind == ".jpeg")
            written = stbi_write_jpg(path.c_str(), m.cols, m.rows, m.c, rgb.data, quality) != 0;
        else if (kind == ".png")
            written = stbi_write_png(path.c_str(), m.cols, m.rows, m.c, rgb.data, 0) != 0;
        else if (kind == ".bmp")
            written = stbi_write_bmp(path.c_str(), m.cols, m.rows, m.c, rgb.data) != 0;
    }
    if (!written)
        QUOLL_LOGE("[imwrite] %s: %s", path.c_str(),
                   rgb.empty() ? "the image is empty"
                               : "it cannot be written: expected a .jpg, .png or .bmp in a folder");
    return written;
}

void imshow(const std::string& name, const Mat& m) { imwrite(name + ".png", m); }
int waitKey(int) { return -1; }

#if NCNN_PIXEL
void resize(const Mat& src, Mat& dst, const Size& size, float sw, float sh, int) {
    const Mat from = src;  // dst may be src
    const bool scaled = size.width == 0 || size.height == 0;
    const int w = scaled ? (int)((float)from.cols * sw) : size.width;
    const int h = scaled ? (int)((float)from.rows * sh) : size.height;
    dst.create(h, w, from.c);
    if (from.empty() || dst.empty()) return;
    const auto run =
        from.c == 1 ? (int (*)(const uchar*, int, int, uchar*, int, int))quoll::resize_bilinear_c1
        : from.c == 3
            ? (int (*)(const uchar*, int, int, uchar*, int, int))quoll::resize_bilinear_c3
            : (int (*)(const uchar*, int, int, uchar*, int, int))quoll::resize_bilinear_c4;
    run(from.data, from.cols, from.rows, dst.data, w, h);
}
#endif

#if NCNN_PIXEL_DRAWING
static unsigned int packed(const Scalar& color) {
    return color[0] | color[1] << 8 | color[2] << 16 | (unsigned)color[3] << 24;
}

void rectangle(Mat& img, Point a, Point b, const Scalar& color, int thickness) {
    const int x = std::min(a.x, b.x), y = std::min(a.y, b.y);
    rectangle(img, Rect(x, y, std::max(a.x, b.x) - x, std::max(a.y, b.y) - y), color, thickness);
}

void rectangle(Mat& img, Rect r, const Scalar& color, int thickness) {
    const unsigned int v = packed(color);
    if (img.c == 1)
        quoll::draw_rectangle_c1(img.data, img.cols, img.rows, r.x, r.y, r.width, r.height, v,
                                 thickness);
    if (img.c == 3)
        quoll::draw_rectangle_c3(img.data, img.cols, img.rows, r.x, r.y, r.width, r.height, v,
                                 thickness);
    if (img.c == 4)
        quoll::draw_rectangle_c4(img.data, img.cols, img.rows, r.x, r.y, r.width, r.height, v,
                                 thickness);
}

void circle(Mat& img, Point p, int radius, const Scalar& color, int thickness) {
    const unsigned int v = packed(color);
    if (img.c == 1)
        quoll::draw_circle_c1(img.data, img.cols, img.rows, p.x, p.y, radius, v, thickness);
    if (img.c == 3)
        quoll::draw_circle_c3(img.data, img.cols, img.rows, p.x, p.y, radius, v, thickness);
    if (img.c == 4)
        quoll::draw_circle_c4(img.data, img.cols, img.rows, p.x, p.y, radius, v, thickness);
}

void line(Mat& img, Point a, Point b, const Scalar& color, int thickness) {
    const unsigned int v = packed(color);
    if (img.c == 1)
        quoll::draw_line_c1(img.data, img.cols, img.rows, a.x, a.y, b.x, b.y, v, thickness);
    if (img.c == 3)
        quoll::draw_line_c3(img.data, img.cols, img.rows, a.x, a.y, b.x, b.y, v, thickness);
    if (img.c == 4)
        quoll::draw_line_c4(img.data, img.cols, img.rows, a.x, a.y, b.x, b.y, v, thickness);
}

static int font_size(double scale) { return std::max(1, (int)(20 * scale)); }

void putText(Mat& img, const std::string& text, Point org, int, double fontScale, Scalar color,
             int) {
    const int size = font_size(fontScale);
    const int y = org.y - size * 2;  // quoll's text hangs from its top left corner
    const unsigned int v = packed(color);
    if (img.c == 1)
        quoll::draw_text_c1(img.data, img.cols, img.rows, text.c_str(), org.x, y, size, v);
    if (img.c == 3)
        quoll::draw_text_c3(img.data, img.cols, img.rows, text.c_str(), org.x, y, size, v);
    if (img.c == 4)
        quoll::draw_text_c4(img.data, img.cols, img.rows, text.c_str(), org.x, y, size, v);
}

Size getTextSize(const std::string& text, int, double fontScale, int, int* baseLine) {
    Size size;
    quoll::get_text_drawing_size(text.c_str(), font_size(fontScale), &size.width, &size.height);
    if (baseLine) *baseLine = 0;
    return size;
}
#endif

}  // namespace cv
