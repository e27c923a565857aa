// Bilinear resize of 8-bit pixels in fixed point.
//
// A weight has kBits fraction bits. A row resized in x is kept in 16 bits as value * 2^11 / 2^4;
// the two rows' products with their weights are each cut to 16 bits (/ 2^16), added, rounded and
// brought back (/ 2^2): 11 - 4 + 11 - 16 - 2 = 0. ncnn rounds at the same places.
#include <math.h>

#include "image/pixel.h"
#include "quoll/image.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

const int kBits = 11;

short fixed_point(float weight) { return (short)(int)(weight * (1 << kBits) + 0.5f); }

template <int C>
void resize_row(const unsigned char* from, short* to, int w, ptrdiff_t next, const PixelTap* taps) {
    for (int x = 0; x < w; x++, to += C) {
        const unsigned char *a = from + (ptrdiff_t)taps[x].index * C, *b = a + next;
        const int wa = taps[x].weight[0], wb = taps[x].weight[1];
        for (int k = 0; k < C; k++) to[k] = (short)((a[k] * wa + b[k] * wb) >> 4);
    }
}

void blend_rows(const short* __restrict a, const short* __restrict b, short wa, short wb,
                unsigned char* __restrict to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const short high_a = (short)((a[i] * wa) >> 16), high_b = (short)((b[i] * wb) >> 16);
        to[i] = (unsigned char)((short)(high_a + high_b + 2) >> 2);
    }
}

template <int C>
int resize(const unsigned char* src, int srcw, int srch, ptrdiff_t srcstride, unsigned char* dst,
           int w, int h, ptrdiff_t stride) {
    const size_t count = (size_t)w * C;
    const Mat taps(w + h, sizeof(PixelTap), 1), rows(w, 2, sizeof(short) * C, C);
    if (taps.empty() || rows.empty()) return kOutOfMemory;
    PixelTap *const xs = (PixelTap*)taps.data, *const ys = xs + w;
    fill_pixel_taps(xs, srcw, w);
    fill_pixel_taps(ys, srch, h);
    short* const slots[2] = {(short*)rows.data, (short*)rows.data + count};
    int held[2] = {-1, -1};  // the source row that a slot holds: row i is kept in slot i % 2
    for (int y = 0; y < h; y++, dst += stride) {
        const int above = ys[y].index, below = srch > 1 ? above + 1 : above;
        const int rows_of_tap[] = {above, below};
        for (const int i : rows_of_tap) {
            if (held[i % 2] != i)
                resize_row<C>(src + i * srcstride, slots[i % 2], w, srcw > 1 ? C : 0, xs);
            held[i % 2] = i;
        }
        blend_rows(slots[above % 2], slots[below % 2], ys[y].weight[0], ys[y].weight[1], dst,
                   count);
    }
    return kOk;
}

int checked_resize(const unsigned char* src, int srcw, int srch, ptrdiff_t srcstride,
                   unsigned char* dst, int w, int h, ptrdiff_t stride, int channels) {
    if (!valid_image(src, srcw, srch, srcstride, channels, "resize_bilinear source") ||
        !valid_image(dst, w, h, stride, channels, "resize_bilinear target"))
        return kError;
    return resize_pixels(src, srcw, srch, srcstride, dst, w, h, stride, channels);
}

}  // namespace

void fill_pixel_taps(PixelTap* taps, int in, int out) {
    const double scale = (double)in / out;
    for (int i = 0; i < out; i++) {
        float at = (float)((i + 0.5) * scale - 0.5);
        int base = (int)floorf(at);
        at -= (float)base;
        if (base < 0) base = 0, at = 0.f;
        if (base >= in - 1) base = in - 2, at = 1.f;
        taps[i].index = base < 0 ? 0 : base;  // `in` may be 1
        taps[i].weight[0] = fixed_point(1.f - at);
        taps[i].weight[1] = fixed_point(at);
    }
}

int resize_pixels(const unsigned char* src, int srcw, int srch, ptrdiff_t srcstride,
                  unsigned char* dst, int w, int h, ptrdiff_t stride, int channels) {
    if ((long long)w + h > 0x7fffffff) {
        QUOLL_LOGE("[resize_bilinear] a target of %d x %d is too large", w, h);
        return kError;
    }
    switch (channels) {
        case 1:
            return resize<1>(src, srcw, srch, srcstride, dst, w, h, stride);
        case 2:
            return resize<2>(src, srcw, srch, srcstride, dst, w, h, stride);
        case 3:
            return resize<3>(src, srcw, srch, srcstride, dst, w, h, stride);
        default:
            return resize<4>(src, srcw, srch, srcstride, dst, w, h, stride);
    }
}

#define QUOLL_RESIZE_BILINEAR(C)                                                                 \
    int resize_bilinear_c##C(const unsigned char* src, int srcw, int srch, unsigned char* dst,   \
                             int w, int h) {                                                     \
        return checked_resize(src, srcw, srch, (ptrdiff_t)srcw * C, dst, w, h, (ptrdiff_t)w * C, \
                              C);                                                                \
    }                                                                                            \
    int resize_bilinear_c##C(const unsigned char* src, int srcw, int srch, int srcstride,        \
                             unsigned char* dst, int w, int h, int stride) {                     \
        return checked_resize(src, srcw, srch, srcstride, dst, w, h, stride, C);                 \
    }
QUOLL_RESIZE_BILINEAR(1)
QUOLL_RESIZE_BILINEAR(2)
QUOLL_RESIZE_BILINEAR(3)
QUOLL_RESIZE_BILINEAR(4)
#undef QUOLL_RESIZE_BILINEAR

int resize_bilinear_yuv420sp(const unsigned char* src, int srcw, int srch, unsigned char* dst,
                             int w, int h) {
    const Yuv420sp from(src, srcw, srch), to(dst, w, h);
    if (!from.valid("resize_bilinear_yuv420sp") || !to.valid("resize_bilinear_yuv420sp"))
        return kError;
    QUOLL_RETURN_IF_ERROR(resize_bilinear_c1(src, srcw, srch, dst, w, h));
    return resize_bilinear_c2(from.uv, srcw / 2, srch / 2, (unsigned char*)to.uv, w / 2, h / 2);
}

}  // namespace quoll
