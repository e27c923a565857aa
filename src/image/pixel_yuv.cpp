// YUV 4:2:0 to RGB.
#include "image/pixel.h"
#include "quoll/image.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// JFIF: R = Y + 1.402 V, G = Y - 0.714136 V - 0.344136 U, B = Y + 1.772 U with U and V around 0;
// the coefficients in units of 1/64.
const int kRedV = 90, kGreenV = 46, kGreenU = 22, kBlueU = 113;

unsigned char clamp_byte(int v) { return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v); }

// `y` is luma in units of 1/64; u and v are chroma bytes.
void write_rgb(int y, int u, int v, unsigned char* rgb) {
    u -= 128, v -= 128;
    rgb[0] = clamp_byte((y + kRedV * v) >> 6);
    rgb[1] = clamp_byte((y - kGreenV * v - kGreenU * u) >> 6);
    rgb[2] = clamp_byte((y + kBlueU * u) >> 6);
}

// `u` is the place of U in a chroma pair, 0 or 1.
int convert(const unsigned char* yuv, int w, int h, unsigned char* rgb, int u,
            const char* function) {
    if (!valid_image(yuv, w, h, w, 1, function) ||
        !valid_image(rgb, w, h, (ptrdiff_t)w * 3, 3, function))
        return kError;
    const unsigned char* chroma = yuv + (ptrdiff_t)w * h;
    const ptrdiff_t chroma_row = ((ptrdiff_t)w + 1) / 2 * 2;
    for (int y = 0; y < h; y++) {
        const unsigned char *luma = yuv + (ptrdiff_t)y * w, *pairs = chroma + y / 2 * chroma_row;
        for (int x = 0; x < w; x++, rgb += 3) {
            const unsigned char* pair = pairs + x / 2 * 2;
            write_rgb(luma[x] << 6, pair[u], pair[1 - u], rgb);
        }
    }
    return kOk;
}

}  // namespace

bool Yuv420sp::valid(const char* function) const {
    if (y && w > 0 && h > 0 && w % 2 == 0 && h % 2 == 0) return true;
    QUOLL_LOGE("[%s] YUV 4:2:0: expected pixels of even width and height, got %s, %d x %d",
               function, y ? "pixels" : "null", w, h);
    return false;
}

int yuv420sp2rgb(const unsigned char* yuv420sp, int w, int h, unsigned char* rgb) {
    return convert(yuv420sp, w, h, rgb, 1, "yuv420sp2rgb");
}

int yuv420sp2rgb_nv12(const unsigned char* yuv420sp, int w, int h, unsigned char* rgb) {
    return convert(yuv420sp, w, h, rgb, 0, "yuv420sp2rgb_nv12");
}

int yuv420sp2rgb_half(const unsigned char* yuv420sp, int w, int h, unsigned char* rgb) {
    static const char* const kName = "yuv420sp2rgb_half";
    if (!valid_image(yuv420sp, w, h, w, 1, kName) ||
        !valid_image(rgb, w / 2, h / 2, (ptrdiff_t)w / 2 * 3, 3, kName))
        return kError;
    const unsigned char* chroma = yuv420sp + (ptrdiff_t)w * h;
    const ptrdiff_t chroma_row = ((ptrdiff_t)w + 1) / 2 * 2;
    for (int y = 0; y < h / 2; y++) {
        const unsigned char *top = yuv420sp + (ptrdiff_t)y * 2 * w, *bottom = top + w,
                            *pairs = chroma + y * chroma_row;
        for (int x = 0; x < w / 2 * 2; x += 2, rgb += 3) {
            const int sum = top[x] + top[x + 1] + bottom[x] + bottom[x + 1];
            write_rgb(sum << 4, pairs[x + 1], pairs[x], rgb);
        }
    }
    return kOk;
}

}  // namespace quoll
