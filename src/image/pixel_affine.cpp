// Affine transforms: the matrices, and the bilinear warp in fixed point.
//
// A place in src has kBits fraction bits, which are the weights. Two products of a byte and a
// weight are added (18 bits) and cut to 13 (/ 2^5); two of those with the other axis's weights are
// added and cut to a byte: 10 - 5 + 10 - 15 = 0. ncnn cuts at the same places.
#include <limits.h>
#include <math.h>
#include <stdint.h>

#include "image/pixel.h"
#include "quoll/image.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

void get_rotation_matrix(float angle, float scale, float dx, float dy, float* tm) {
    const double radians = angle * (3.14159265358979323846 / 180);
    const double a = cos(radians) * scale, b = sin(radians) * scale;
    const double matrix[6] = {a, b, (1 - a) * dx - b * dy, -b, a, b * dx + (1 - a) * dy};
    for (int i = 0; i < 6; i++) tm[i] = (float)matrix[i];
}

// With points relative to their means, z = a + bi minimising sum |z * from - to|^2 is
// sum(conj(from) * to) / sum |from|^2; the shift takes one mean to the other.
int get_affine_transform(const float* points_from, const float* points_to, int num_point,
                         float* tm) {
    if (!points_from || !points_to || !tm || num_point < 2) {
        QUOLL_LOGE("[get_affine_transform] expected two lists of at least 2 points, got %d",
                   num_point);
        return kError;
    }
    double mean[4] = {0, 0, 0, 0}, square = 0, a = 0, b = 0;
    for (int i = 0; i < num_point; i++) {
        mean[0] += (double)points_from[2 * i] / num_point;
        mean[1] += (double)points_from[2 * i + 1] / num_point;
        mean[2] += (double)points_to[2 * i] / num_point;
        mean[3] += (double)points_to[2 * i + 1] / num_point;
    }
    for (int i = 0; i < num_point; i++) {
        const double x = points_from[2 * i] - mean[0], y = points_from[2 * i + 1] - mean[1];
        const double u = points_to[2 * i] - mean[2], v = points_to[2 * i + 1] - mean[3];
        square += x * x + y * y;
        a += x * u + y * v;
        b += x * v - y * u;
    }
    if (!(square > 0) || !isfinite(a / square) || !isfinite(b / square)) {
        QUOLL_LOGE("[get_affine_transform] the %d points are all the same, or not finite",
                   num_point);
        return kError;
    }
    a /= square, b /= square;
    const double matrix[6] = {a, -b, mean[2] - a * mean[0] + b * mean[1],
                              b, a,  mean[3] - b * mean[0] - a * mean[1]};
    for (int i = 0; i < 6; i++) tm[i] = (float)matrix[i];
    return kOk;
}

void invert_affine_transform(const float* tm, float* tm_inv) {
    const double determinant = (double)tm[0] * tm[4] - (double)tm[1] * tm[3];
    const double d = determinant != 0 ? 1 / determinant : 0;
    const double a = tm[4] * d, b = -tm[1] * d, c = -tm[3] * d, e = tm[0] * d;
    const double x = -a * tm[2] - b * tm[5], y = -c * tm[2] - e * tm[5];
    const double matrix[6] = {a, b, x, c, e, y};
    for (int i = 0; i < 6; i++) tm_inv[i] = (float)matrix[i];
}

namespace {

const int kBits = 10, kOne = 1 << kBits;

// Rounds half away from zero; beyond the ints it is far outside of any image.
int fixed_point(float v) {
    v = v * kOne + (v >= 0.f ? 0.5f : -0.5f);
    if (v >= 2147483648.f) return INT_MAX;
    return v < -2147483648.f ? INT_MIN : (int)v;
}

struct Source {
    const unsigned char* pixels;
    int w, h;
    ptrdiff_t stride;
};

template <int C>
void blend(const unsigned char* a0, const unsigned char* a1, const unsigned char* b0,
           const unsigned char* b1, int fx, int fy, unsigned char* to) {
    for (int k = 0; k < C; k++) {
        const int top = (a0[k] * (kOne - fx) + a1[k] * fx) >> 5;
        const int low = (b0[k] * (kOne - fx) + b1[k] * fx) >> 5;
        to[k] = (unsigned char)((top * (kOne - fy) + low * fy) >> 15);
    }
}

// The sample at (sx, sy) / kOne; `outside` is the pixel beyond the edges.
template <int C>
void sample(const Source& s, int64_t sx, int64_t sy, const unsigned char* outside,
            unsigned char* to) {
    const int64_t x = sx >> kBits, y = sy >> kBits;
    const int fx = (int)(sx & (kOne - 1)), fy = (int)(sy & (kOne - 1));
    const bool in_x0 = x >= 0 && x < s.w, in_x1 = x >= -1 && x + 1 < s.w;
    const bool in_y0 = y >= 0 && y < s.h, in_y1 = y >= -1 && y + 1 < s.h;
    const unsigned char* p = s.pixels;
    const ptrdiff_t at = (ptrdiff_t)y * s.stride + (ptrdiff_t)x * C;
    blend<C>(in_x0 && in_y0 ? p + at : outside, in_x1 && in_y0 ? p + at + C : outside,
             in_x0 && in_y1 ? p + at + s.stride : outside,
             in_x1 && in_y1 ? p + at + s.stride + C : outside, fx, fy, to);
}

// border: the colour outside; null: what dst holds.
template <int C>
int warp(const Source& s, unsigned char* dst, int w, int h, ptrdiff_t stride, const float* tm,
         const unsigned char* border) {
    const Mat deltas(w, 2, (size_t)4u);
    if (deltas.empty()) return kOutOfMemory;
    int *dx = (int*)deltas.data, *dy = dx + w;
    for (int x = 0; x < w; x++) dx[x] = fixed_point(tm[0] * x), dy[x] = fixed_point(tm[3] * x);
    for (int y = 0; y < h; y++) {
        const int64_t x0 = fixed_point(tm[1] * y + tm[2]), y0 = fixed_point(tm[4] * y + tm[5]);
        unsigned char* to = dst + y * stride;
        for (int x = 0; x < w; x++, to += C)
            sample<C>(s, x0 + dx[x], y0 + dy[x], border ? border : to, to);
    }
    return kOk;
}

int checked_warp(const unsigned char* src, int srcw, int srch, ptrdiff_t srcstride,
                 unsigned char* dst, int w, int h, ptrdiff_t stride, const float* tm, int type,
                 unsigned int v, int channels) {
    if (!valid_image(src, srcw, srch, srcstride, channels, "warpaffine_bilinear source") ||
        !valid_image(dst, w, h, stride, channels, "warpaffine_bilinear target"))
        return kError;
    for (int i = 0; i < 6; i++) {
        if (tm && isfinite(tm[i])) continue;
        QUOLL_LOGE("[warpaffine_bilinear] tm: expected 6 finite numbers, got %s",
                   tm ? "others" : "null");
        return kError;
    }
    const Source s = {src, srcw, srch, srcstride};
    const unsigned char color[4] = {color_byte(v, 0), color_byte(v, 1), color_byte(v, 2),
                                    color_byte(v, 3)};
    const unsigned char* border = type == BORDER_TRANSPARENT ? nullptr : color;
    switch (channels) {
        case 1:
            return warp<1>(s, dst, w, h, stride, tm, border);
        case 2:
            return warp<2>(s, dst, w, h, stride, tm, border);
        case 3:
            return warp<3>(s, dst, w, h, stride, tm, border);
        default:
            return warp<4>(s, dst, w, h, stride, tm, border);
    }
}

}  // namespace

#define QUOLL_WARP(C)                                                                              \
    int warpaffine_bilinear_c##C(const unsigned char* src, int srcw, int srch, unsigned char* dst, \
                                 int w, int h, const float* tm, int type, unsigned int v) {        \
        return checked_warp(src, srcw, srch, (ptrdiff_t)srcw * C, dst, w, h, (ptrdiff_t)w * C, tm, \
                            type, v, C);                                                           \
    }                                                                                              \
    int warpaffine_bilinear_c##C(const unsigned char* src, int srcw, int srch, int srcstride,      \
                                 unsigned char* dst, int w, int h, int stride, const float* tm,    \
                                 int type, unsigned int v) {                                       \
        return checked_warp(src, srcw, srch, srcstride, dst, w, h, stride, tm, type, v, C);        \
    }
QUOLL_WARP(1)
QUOLL_WARP(2)
QUOLL_WARP(3)
QUOLL_WARP(4)
#undef QUOLL_WARP

int warpaffine_bilinear_yuv420sp(const unsigned char* src, int srcw, int srch, unsigned char* dst,
                                 int w, int h, const float* tm, int type, unsigned int v) {
    const Yuv420sp from(src, srcw, srch), to(dst, w, h);
    if (!from.valid("warpaffine_bilinear_yuv420sp") || !to.valid("warpaffine_bilinear_yuv420sp"))
        return kError;
    QUOLL_RETURN_IF_ERROR(warpaffine_bilinear_c1(src, srcw, srch, dst, w, h, tm, type, v));
    const float half[6] = {tm[0], tm[1], tm[2] / 2, tm[3], tm[4], tm[5] / 2};
    return warpaffine_bilinear_c2(from.uv, srcw / 2, srch / 2, (unsigned char*)to.uv, w / 2, h / 2,
                                  half, type, v >> 8);
}

}  // namespace quoll
