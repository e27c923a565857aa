// DwconvPlanarKernel (layer/cpu/dwconv/dwconv.h): vectors of 8 neighbouring outputs, read where the
// image lies; the last ones of a row take some again rather than fewer.
#pragma once

#include <arm_neon.h>

#include "layer/cpu/dwconv/dwconv.h"
#include "simd/vec.h"

namespace quoll {
namespace {

QUOLL_INLINE float16x8_t load_halves(const uint16_t* p) {
    return vreinterpretq_f16_u16(vld1q_u16(p));
}

// The columns under the three taps of outputs x to x + 7. first, last: of a row with a column of
// padding there, bool or a type of one.
template <int stride, class First, class Last>
QUOLL_INLINE void tap_columns(const uint16_t* row, int x, int before, First first, Last last,
                              float16x8_t (&tap)[3]) {
    const float16x8_t zeros = vdupq_n_f16(0);
    if constexpr (stride == 1) {
        const uint16_t* const at = row + x - before;
        tap[1] = load_halves(at + 1);
        tap[0] = first ? vextq_f16(zeros, tap[1], 7) : load_halves(at);
        tap[2] = last ? vextq_f16(tap[1], zeros, 1) : load_halves(at + 2);
    } else {
        const uint16_t* const at = row + 2 * x;
        const uint16x8x2_t both = vld2q_u16(at);
        const float16x8_t even = vreinterpretq_f16_u16(both.val[0]);
        const float16x8_t odd = vreinterpretq_f16_u16(both.val[1]);
        if (before) {
            tap[0] =
                first ? vextq_f16(zeros, odd, 7) : vreinterpretq_f16_u16(vld2q_u16(at - 1).val[0]);
            tap[1] = even, tap[2] = odd;
        } else {
            tap[0] = even, tap[1] = odd;
            tap[2] =
                last ? vextq_f16(even, zeros, 1) : vreinterpretq_f16_u16(vld2q_u16(at + 1).val[1]);
        }
    }
}

// Outputs x to x + 7 of two rows, or of the first of them; input row i, of which there are those
// from `begin` to `end`, lies under kernel row i of the first and i - stride of the second.
template <int stride, int rows, class First, class Last>
QUOLL_INLINE void planar_tile(const DwconvPlanar& r, const uint16_t* in, int begin, int end, int x,
                              First first, Last last, uint16_t* out) {
    const float16x8_t w = load_halves(r.weight), rest = load_halves(r.weight + 8);
    float16x8_t sum[2];
    sum[0] = sum[1] = vdupq_laneq_f16(rest, 1);
#pragma GCC unroll 8
    for (int i = 0; i < 3 + (rows - 1) * stride; i++) {
        if (i < begin || i >= end) continue;
        float16x8_t tap[3];
        tap_columns<stride>(in + (ptrdiff_t)i * r.in_w, x, r.before_x, first, last, tap);
#pragma GCC unroll 8
        for (int j = 0; j < rows; j++) {
            const int ky = i - j * stride;
            if (ky == 0) {
                sum[j] = vfmaq_laneq_f16(sum[j], tap[0], w, 0);
                sum[j] = vfmaq_laneq_f16(sum[j], tap[1], w, 1);
                sum[j] = vfmaq_laneq_f16(sum[j], tap[2], w, 2);
            } else if (ky == 1) {
                sum[j] = vfmaq_laneq_f16(sum[j], tap[0], w, 3);
                sum[j] = vfmaq_laneq_f16(sum[j], tap[1], w, 4);
                sum[j] = vfmaq_laneq_f16(sum[j], tap[2], w, 5);
            } else if (ky == 2) {
                sum[j] = vfmaq_laneq_f16(sum[j], tap[0], w, 6);
                sum[j] = vfmaq_laneq_f16(sum[j], tap[1], w, 7);
                sum[j] = vfmaq_laneq_f16(sum[j], tap[2], rest, 0);
            }
        }
    }
    const float16x8_t low = vdupq_n_f16((float16_t)r.low), high = vdupq_n_f16((float16_t)r.high);
#pragma GCC unroll 8
    for (int j = 0; j < rows; j++) {
        const float16x8_t value = vminq_f16(high, vmaxq_f16(low, sum[j]));
        vst1q_u16(out + (ptrdiff_t)j * r.out_w + x, vreinterpretq_u16_f16(value));
    }
}

template <int stride, int rows>
QUOLL_INLINE void planar_rows(const DwconvPlanar& r, int y, uint16_t* out) {
    const int top = y * stride - r.before_y, n = kDwconvPlanarOutputs;
    const int begin = top < 0 ? -top : 0, end = r.in_h - top;
    const uint16_t* const in = r.in + (ptrdiff_t)top * r.in_w;
    const bool left = r.before_x > 0;
    const bool right = (r.out_w - 1) * stride + 3 - r.before_x > r.in_w;
    const std::true_type yes;
    const std::false_type no;
    for (int x = 0;; x += n) {
        if (x > r.out_w - n) x = r.out_w - n;
        const bool end_of_row = x == r.out_w - n;
        const bool first = left && x == 0, last = right && end_of_row;
        const auto tile = [&](auto at_first, auto at_last) QUOLL_INLINE_LAMBDA {
            planar_tile<stride, rows>(r, in, begin, end, x, at_first, at_last, out);
        };
        // Pairs of rows, which most are, know the edges when they are compiled.
        if (rows == 1)
            tile(first, last);
        else if (first)
            last ? tile(yes, yes) : tile(yes, no);
        else
            last ? tile(no, yes) : tile(no, no);
        if (end_of_row) return;
    }
}

template <int stride>
void dwconv_planar(const DwconvPlanar& run) {
    const DwconvPlanar r = run;
    uint16_t* out = r.out;
    int y = r.y_first;
    for (; y + 2 <= r.y_last; y += 2, out += 2 * (ptrdiff_t)r.out_w)
        planar_rows<stride, 2>(r, y, out);
    if (y < r.y_last) planar_rows<stride, 1>(r, y, out);
}

}  // namespace
}  // namespace quoll
