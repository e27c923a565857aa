// Parts of the int8 family's functions (layer/cpu/int8/generic.h) on NEON: blocks of four channels
// become neighbours, four pixels at a time. Input: its Int8Input. E: a value of A, a byte or 16
// bits.
#pragma once

#include <arm_neon.h>

#include "simd/convert.h"

namespace quoll {
namespace {

// Of four blocks from src on, sixteen neighbours at dst: as many pixels as go by fours, whose
// number it returns.
template <class Input, class E>
QUOLL_INLINE size_t copy_four_blocks(const Input& t, const int8_t* src, E* dst) {
    size_t p = 0;
    for (; p + 4 <= t.pixels; p += 4) {
        int8x16_t pixels[4];
        simd::load_transposed_words(src + 4 * p, t.src_block, pixels);
        for (int i = 0; i < 4; i++, dst += t.dst_pixel) {
            if constexpr (sizeof(E) == 1) {
                vst1q_s8((int8_t*)dst, pixels[i]);
            } else {
                vst1q_s16((int16_t*)dst, vmovl_s8(vget_low_s8(pixels[i])));
                vst1q_s16((int16_t*)dst + 8, vmovl_s8(vget_high_s8(pixels[i])));
            }
        }
    }
    return p;
}

// Of two blocks from src on, neighbours at dst, where pixels follow each other.
template <class Input>
QUOLL_INLINE size_t copy_two_blocks(const Input& t, const int8_t* src, uint8_t* dst) {
    size_t p = 0;
    for (; p + 4 <= t.pixels; p += 4) {
        const int32x4_t a = vreinterpretq_s32_s8(vld1q_s8(src + 4 * p));
        const int32x4_t b = vreinterpretq_s32_s8(vld1q_s8(src + t.src_block + 4 * p));
        const int32x4x2_t both = vzipq_s32(a, b);
        vst1q_s8((int8_t*)dst + 8 * p, vreinterpretq_s8_s32(both.val[0]));
        vst1q_s8((int8_t*)dst + 8 * p + 16, vreinterpretq_s8_s32(both.val[1]));
    }
    return p;
}

// The blocks from src on that were copied together, of those before channel `channel`, and in
// *done how many pixels of them. Bytes go in twos where planes of eight channels lie side by side.
template <class Input, class E>
QUOLL_INLINE int copy_blocks(const Input& t, int channel, const int8_t* src, E* dst, size_t* done) {
    if (t.src_pixel != 4) return 1;
    const int left = t.channels - channel, at = channel % t.dst_pack;
    if (left >= 16 && at + 16 <= t.dst_pack) {
        *done = copy_four_blocks(t, src, dst);
        return 4;
    }
    if constexpr (sizeof(E) == 1) {
        if (t.dst_pack == 8 && t.dst_pixel == 8 && left >= 8 && at == 0) {
            *done = copy_two_blocks(t, src, dst);
            return 2;
        }
    }
    return 1;
}

#if defined(__aarch64__)
// Rows of one register, four at a time, as bytes between low and high, which hold 0: rounding keeps
// the order of values, so that bytes can be limited instead of floats; NaN is 0 there too.
// row: the m-th as floats. Returns how many rows it stored.
template <class Row, class Out>
QUOLL_INLINE int store_limited_rows(float low, float high, int rows, Out* c, Row row) {
    const int8x16_t least = vdupq_n_s8((int8_t)vcvtas_s32_f32(low));
    const int8x16_t most = vdupq_n_s8((int8_t)vcvtas_s32_f32(high));
    int m = 0;
    for (; m + 4 <= rows; m += 4, c += 4 * simd::kLanes) {
        const simd::vecf<simd::kLanes> x[4] = {row(m), row(m + 1), row(m + 2), row(m + 3)};
        simd::store_limited_bytes(x, least, most, c);
    }
    return m;
}
#endif

}  // namespace
}  // namespace quoll
