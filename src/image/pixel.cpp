// Pixels to and from Mats: a conversion is a table of where each target channel comes from.
#include <stdint.h>

#include "image/pixel.h"
#include "quoll/log.h"

namespace quoll {

namespace {

struct PixelFormat {
    int channels;
    int red, green, blue, alpha;  // bytes of a pixel; alpha is -1 where there is none
};

const PixelFormat* find_format(int type) {
    static const PixelFormat formats[] = {
        {3, 0, 1, 2, -1},  // PIXEL_RGB
        {3, 2, 1, 0, -1},  // PIXEL_BGR
        {1, 0, 0, 0, -1},  // PIXEL_GRAY
        {4, 0, 1, 2, 3},   // PIXEL_RGBA
        {4, 2, 1, 0, 3},   // PIXEL_BGRA
    };
    return type >= Mat::PIXEL_RGB && type <= Mat::PIXEL_BGRA ? &formats[type - 1] : nullptr;
}

// ITU-R BT.601 luma (0.299, 0.587, 0.114) in units of 1/256.
inline int luma(int red, int green, int blue) { return (77 * red + 150 * green + 29 * blue) >> 8; }

// One row of one target channel, read from pixels of `In` bytes.
template <int In>
void read_channel(const unsigned char* row, int w, const PixelPlan& plan, int k, float* out) {
    const int from = plan.from[k];
    if (from == PixelPlan::kGray) {
        const unsigned char *red = row + plan.red, *green = row + plan.green,
                            *blue = row + plan.blue;
        for (int x = 0; x < w; x++) out[x] = (float)luma(red[x * In], green[x * In], blue[x * In]);
    } else if (from == PixelPlan::kOpaque) {
        for (int x = 0; x < w; x++) out[x] = 255.f;
    } else {
        for (int x = 0; x < w; x++) out[x] = row[x * In + from];
    }
}

void read_row(const unsigned char* row, int w, const PixelPlan& plan, int k, float* out) {
    if (plan.in == 1)
        read_channel<1>(row, w, plan, k, out);
    else if (plan.in == 3)
        read_channel<3>(row, w, plan, k, out);
    else
        read_channel<4>(row, w, plan, k, out);
}

inline unsigned char to_byte(float v) {
    return (unsigned char)(v > 0.f ? v < 255.f ? v : 255.f : 0.f);  // NaN gives 0
}

// One row of one target channel into pixels of `Out` bytes; from[c] is that row of Mat channel c.
template <int Out>
void write_channel(const float* const* from, int w, const PixelPlan& plan, int k,
                   unsigned char* out) {
    if (plan.from[k] == PixelPlan::kGray) {
        const float *red = from[plan.red], *green = from[plan.green], *blue = from[plan.blue];
        for (int x = 0; x < w; x++)
            out[x * Out + k] =
                (unsigned char)luma(to_byte(red[x]), to_byte(green[x]), to_byte(blue[x]));
    } else if (plan.from[k] == PixelPlan::kOpaque) {
        for (int x = 0; x < w; x++) out[x * Out + k] = 255;
    } else {
        const float* in = from[plan.from[k]];
        for (int x = 0; x < w; x++) out[x * Out + k] = to_byte(in[x]);
    }
}

void write_row(const float* const* from, int w, const PixelPlan& plan, unsigned char* out) {
    for (int k = 0; k < plan.out; k++) {
        if (plan.out == 1)
            write_channel<1>(from, w, plan, k, out);
        else if (plan.out == 3)
            write_channel<3>(from, w, plan, k, out);
        else
            write_channel<4>(from, w, plan, k, out);
    }
}

// `pixels` is a valid image.
Mat read_pixels(const unsigned char* pixels, const PixelPlan& plan, int w, int h, ptrdiff_t stride,
                Allocator* allocator) {
    Mat m(w, h, plan.out, (size_t)4u, allocator);
    if (m.empty()) return m;
    for (int k = 0; k < plan.out; k++) {
        float* out = (float*)m.data + k * m.cstep;
        for (int y = 0; y < h; y++) read_row(pixels + y * stride, w, plan, k, out + (size_t)y * w);
    }
    return m;
}

// `pixels` is a valid image and m a valid source of plan.in channels.
void write_pixels(const Mat& m, const PixelPlan& plan, unsigned char* pixels, ptrdiff_t stride) {
    for (int y = 0; y < m.h; y++) {
        const float* rows[4] = {};
        for (int q = 0; q < plan.in; q++)
            rows[q] = (const float*)m.data + q * m.cstep + (size_t)y * m.w;
        write_row(rows, m.w, plan, pixels + y * stride);
    }
}

// The bytes of a row of w pixels of the source format, 0 when the type is unknown.
int row_bytes(int type, int w) {
    const PixelFormat* f = find_format(type & Mat::PIXEL_FORMAT_MASK);
    return f && w > 0 && w <= INT32_MAX / f->channels ? w * f->channels : 0;
}

// The same for the target format.
int target_row_bytes(int type, int w) {
    const int target = (int)((unsigned int)type >> Mat::PIXEL_CONVERT_SHIFT);
    return row_bytes(target ? target : type, w);
}

bool valid_source(const Mat& m, const PixelPlan& plan, const char* function) {
    if (!m.empty() && m.dtype == DType::f32 && m.elempack == 1 && m.n == 1 &&
        (m.dims == 2 || m.dims == 3) && m.c >= plan.in)
        return true;
    QUOLL_LOGE(
        "[%s] expected one image as an f32 Mat of w, h and %d channels with elempack 1, got "
        "%d axes, %d channels, elempack %d, %d images of %s",
        function, plan.in, m.dims, m.c, m.elempack, m.n, dtype_name(m.dtype));
    return false;
}

}  // namespace

bool make_plan(int type, PixelPlan& plan, const char* function) {
    const int target = (int)((unsigned int)type >> Mat::PIXEL_CONVERT_SHIFT);
    const PixelFormat* in = find_format(type & Mat::PIXEL_FORMAT_MASK);
    const PixelFormat* out = target ? find_format(target) : in;
    if (!in || !out) {
        QUOLL_LOGE("[%s] type: expected PIXEL_x or PIXEL_x2y, got 0x%x", function,
                   (unsigned int)type);
        return false;
    }
    plan.in = in->channels, plan.out = out->channels;
    plan.red = in->red, plan.green = in->green, plan.blue = in->blue;
    if (out->channels == 1) {
        plan.from[0] = in->channels == 1 ? 0 : PixelPlan::kGray;
        return true;
    }
    plan.from[out->red] = in->red;
    plan.from[out->green] = in->green;
    plan.from[out->blue] = in->blue;
    if (out->alpha >= 0) plan.from[out->alpha] = in->alpha >= 0 ? in->alpha : PixelPlan::kOpaque;
    return true;
}

bool valid_image(const void* pixels, int w, int h, ptrdiff_t stride, int channels,
                 const char* function) {
    const int64_t row = (int64_t)w * channels, step = stride < 0 ? -(int64_t)stride : stride;
    if (pixels && w > 0 && h > 0 && step >= row) return true;
    QUOLL_LOGE(
        "[%s] image: expected pixels of at least 1 x 1 in rows of at least %lld bytes, got "
        "%s, %d x %d, stride %lld",
        function, (long long)row, pixels ? "pixels" : "null", w, h, (long long)stride);
    return false;
}

Mat Mat::from_pixels(const unsigned char* pixels, int type, int w, int h, Allocator* allocator) {
    return from_pixels(pixels, type, w, h, row_bytes(type, w), allocator);
}

Mat Mat::from_pixels(const unsigned char* pixels, int type, int w, int h, int stride,
                     Allocator* allocator) {
    PixelPlan plan;
    if (!make_plan(type, plan, "from_pixels") ||
        !valid_image(pixels, w, h, stride, plan.in, "from_pixels"))
        return Mat();
    return read_pixels(pixels, plan, w, h, stride, allocator);
}

Mat Mat::from_pixels_resize(const unsigned char* pixels, int type, int w, int h, int target_width,
                            int target_height, Allocator* allocator) {
    return from_pixels_resize(pixels, type, w, h, row_bytes(type, w), target_width, target_height,
                              allocator);
}

Mat Mat::from_pixels_resize(const unsigned char* pixels, int type, int w, int h, int stride,
                            int target_width, int target_height, Allocator* allocator) {
    static const char* const kName = "from_pixels_resize";
    PixelPlan plan;
    if (!make_plan(type, plan, kName) || !valid_image(pixels, w, h, stride, plan.in, kName))
        return Mat();
    if (w == target_width && h == target_height)
        return read_pixels(pixels, plan, w, h, stride, allocator);
    const ptrdiff_t row = (ptrdiff_t)target_width * plan.in;
    if (!valid_image(pixels, target_width, target_height, row, plan.in, kName)) return Mat();
    Mat resized(Shape(target_width, target_height, plan.in, DType::u8), plan.in, nullptr);
    if (resized.empty() || resize_pixels(pixels, w, h, stride, resized, target_width, target_height,
                                         row, plan.in) != 0)
        return Mat();
    return read_pixels(resized, plan, target_width, target_height, row, allocator);
}

Mat Mat::from_pixels_roi(const unsigned char* pixels, int type, int w, int h, int roix, int roiy,
                         int roiw, int roih, Allocator* allocator) {
    return from_pixels_roi(pixels, type, w, h, row_bytes(type, w), roix, roiy, roiw, roih,
                           allocator);
}

// The first pixel of a rectangle, null after a message when it does not lie inside the image.
static const unsigned char* roi_pixels(const unsigned char* pixels, int type, int w, int h,
                                       int stride, int x, int y, int roiw, int roih,
                                       const char* function) {
    PixelPlan plan;
    if (!make_plan(type, plan, function) || !valid_image(pixels, w, h, stride, plan.in, function))
        return nullptr;
    if (x < 0 || y < 0 || roiw < 1 || roih < 1 || roiw > w - x || roih > h - y) {
        QUOLL_LOGE("[%s] expected a rectangle inside %d x %d, got %d x %d at (%d, %d)", function, w,
                   h, roiw, roih, x, y);
        return nullptr;
    }
    return pixels + (ptrdiff_t)y * stride + (ptrdiff_t)x * plan.in;
}

Mat Mat::from_pixels_roi(const unsigned char* pixels, int type, int w, int h, int stride, int roix,
                         int roiy, int roiw, int roih, Allocator* allocator) {
    const unsigned char* roi =
        roi_pixels(pixels, type, w, h, stride, roix, roiy, roiw, roih, "from_pixels_roi");
    return roi ? from_pixels(roi, type, roiw, roih, stride, allocator) : Mat();
}

Mat Mat::from_pixels_roi_resize(const unsigned char* pixels, int type, int w, int h, int roix,
                                int roiy, int roiw, int roih, int target_width, int target_height,
                                Allocator* allocator) {
    return from_pixels_roi_resize(pixels, type, w, h, row_bytes(type, w), roix, roiy, roiw, roih,
                                  target_width, target_height, allocator);
}

Mat Mat::from_pixels_roi_resize(const unsigned char* pixels, int type, int w, int h, int stride,
                                int roix, int roiy, int roiw, int roih, int target_width,
                                int target_height, Allocator* allocator) {
    const unsigned char* roi =
        roi_pixels(pixels, type, w, h, stride, roix, roiy, roiw, roih, "from_pixels_roi_resize");
    return roi ? from_pixels_resize(roi, type, roiw, roih, stride, target_width, target_height,
                                    allocator)
               : Mat();
}

void Mat::to_pixels(unsigned char* pixels, int type) const {
    to_pixels(pixels, type, target_row_bytes(type, w));
}

void Mat::to_pixels(unsigned char* pixels, int type, int stride) const {
    PixelPlan plan;
    if (make_plan(type, plan, "to_pixels") && valid_source(*this, plan, "to_pixels") &&
        valid_image(pixels, w, h, stride, plan.out, "to_pixels"))
        write_pixels(*this, plan, pixels, stride);
}

void Mat::to_pixels_resize(unsigned char* pixels, int type, int target_width,
                           int target_height) const {
    to_pixels_resize(pixels, type, target_width, target_height,
                     target_row_bytes(type, target_width));
}

void Mat::to_pixels_resize(unsigned char* pixels, int type, int target_width, int target_height,
                           int target_stride) const {
    static const char* const kName = "to_pixels_resize";
    PixelPlan plan;
    if (!make_plan(type, plan, kName) || !valid_source(*this, plan, kName) ||
        !valid_image(pixels, target_width, target_height, target_stride, plan.out, kName))
        return;
    if (w == target_width && h == target_height)
        return write_pixels(*this, plan, pixels, target_stride);
    Mat own_size(Shape(w, h, plan.out, DType::u8), plan.out, nullptr);
    if (own_size.empty()) return;
    const ptrdiff_t row = (ptrdiff_t)w * plan.out;
    write_pixels(*this, plan, own_size, row);
    resize_pixels(own_size, w, h, row, pixels, target_width, target_height, target_stride,
                  plan.out);
}

}  // namespace quoll
