// Parts of the int8 family's functions (layer/cpu/int8/generic.h) on NEON: blocks of four channels
// become neighbours, four pixels at a time. Input: its Int8Input. E: a value of A, a byte or 16
// bits.
#pragma once

#include <arm_neon.h>
#include <string.h>

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

// Four pixels of a block, neighbours or, with kEveryOther, with one between each two, which is
// read.
template <bool kEveryOther>
QUOLL_INLINE int32x4_t load_pixels(const int8_t* src) {
    if constexpr (kEveryOther) return vld2q_s32((const int32_t*)src).val[0];
    return vreinterpretq_s32_s8(vld1q_s8(src));
}

// Of a block from src on to dst, and of the block behind it as its neighbour if there are `two`.
// Returns how many pixels went by fours.
template <bool kEveryOther, bool two, class Input>
QUOLL_INLINE size_t copy_pixels(const Input& t, const int8_t* src, uint8_t* dst) {
    const size_t end = t.pixels - (kEveryOther && t.pixels > 0);
    size_t p = 0;
    for (; p + 4 <= end; p += 4, src += kEveryOther ? 32 : 16) {
        const int32x4_t a = load_pixels<kEveryOther>(src);
        if constexpr (!two) {
            vst1q_s8((int8_t*)dst + 4 * p, vreinterpretq_s8_s32(a));
            continue;
        }
        const int32x4_t b = load_pixels<kEveryOther>(src + t.src_block);
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
    const int left = t.channels - channel, at = channel % t.dst_pack;
    if constexpr (sizeof(E) == 1) {
        const bool two = t.dst_pack == 8 && t.dst_pixel == 8 && left >= 8 && at == 0;
        if (t.src_pixel == 8 && (two || t.dst_pixel == 4)) {
            *done =
                two ? copy_pixels<true, true>(t, src, dst) : copy_pixels<true, false>(t, src, dst);
            return two ? 2 : 1;
        }
        if (t.src_pixel == 4 && t.dst_pixel == 4) {
            memcpy(dst, src, 4 * t.pixels);
            *done = t.pixels;
            return 1;
        }
        if (t.src_pixel == 4 && two) {
            *done = copy_pixels<false, true>(t, src, dst);
            return 2;
        }
    }
    if (t.src_pixel != 4) return 1;
    if (left >= 16 && at + 16 <= t.dst_pack) {
        *done = copy_four_blocks(t, src, dst);
        return 4;
    }
    return 1;
}

// Rows of four values at `part` to planes, at c + columns[i] for each of `count`: as many rows as
// go by registers of a plane, whose number it returns.
template <class T>
QUOLL_INLINE int store_planes(const T* part, T* c, const ptrdiff_t* columns, size_t count,
                              int rows) {
    constexpr int kRows = 16 / sizeof(T);
    int m = 0;
    for (; m + kRows <= rows; m += kRows, part += 4 * kRows, c += kRows) {
        const auto store = [&](const auto& planes, auto store_plane) QUOLL_INLINE_LAMBDA {
            store_plane(c + columns[0], planes.val[0]);
            if (count > 1) store_plane(c + columns[1], planes.val[1]);
            if (count > 2) store_plane(c + columns[2], planes.val[2]);
            if (count > 3) store_plane(c + columns[3], planes.val[3]);
        };
        if constexpr (sizeof(T) == 1) {
            store(vld4q_s8(part), [](int8_t* to, int8x16_t x) { vst1q_s8(to, x); });
        } else {
            store(vld4q_f32(part), [](float* to, float32x4_t x) { vst1q_f32(to, x); });
        }
    }
    return m;
}

// A limit of bytes in all lanes.
QUOLL_INLINE int8x16_t byte_limit(float x) {
    return vdupq_n_s8((int8_t)vgetq_lane_s32(simd::rounded_away(vdupq_n_f32(x)), 0));
}

// Rows of one register, four at a time, as bytes between low and high, which hold 0: rounding keeps
// the order of values, so that bytes can be limited instead of floats; NaN is 0 there too.
// floats: those of the row at an address, `step` bytes apart. Returns how many rows it stored.
template <class Floats, class Out>
QUOLL_INLINE int store_limited_rows(float low, float high, int rows, Out* c, const char* from,
                                    size_t step, Floats floats) {
    const int8x16_t least = byte_limit(low), most = byte_limit(high);
    int m = 0;
    for (; m + 4 <= rows; m += 4, from += 4 * step, c += 4 * simd::kLanes) {
        const simd::vecf<simd::kLanes> x[4] = {floats(from), floats(from + step),
                                               floats(from + 2 * step), floats(from + 3 * step)};
        simd::store_limited_bytes(x, least, most, c);
    }
    return m;
}

// The same of two registers side by side, to planes c0 and c1. pair: the four of rows m and m + 1
// as floats, the registers of one row after the other.
template <class Pair>
QUOLL_INLINE int store_limited_pairs(float low, float high, int rows, int8_t* c0, int8_t* c1,
                                     Pair pair) {
    using V = simd::vecf<simd::kLanes>;
    const int8x16_t least = byte_limit(low), most = byte_limit(high);
    int m = 0;
    for (; m + 4 <= rows; m += 4, c0 += 4 * simd::kLanes, c1 += 4 * simd::kLanes) {
        V a[4], b[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) pair(a[i], b[i]);
        simd::store_limited_bytes(a, least, most, c0);
        simd::store_limited_bytes(b, least, most, c1);
    }
    return m;
}

// Four vectors, `step` floats apart, times `scale` as bytes.
QUOLL_INLINE int8x16_t rounded_bytes(const float* p, ptrdiff_t step, float scale) {
    using V = simd::vecf<4>;
    const V factor = V::set(scale);
    const V x[4] = {V::load(p) * factor, V::load(p + step) * factor, V::load(p + 2 * step) * factor,
                    V::load(p + 3 * step) * factor};
    int8_t bytes[16];
    simd::store_limited_bytes(x, vdupq_n_s8(-127), vdupq_n_s8(127), bytes);
    return vld1q_s8(bytes);
}

QUOLL_INLINE int8x16_t sixteen_bytes(const float* p, float scale) {
    return rounded_bytes(p, 4, scale);
}
QUOLL_INLINE int8x16_t sixteen_bytes(const int8_t* p, float) { return vld1q_s8(p); }

// Values in a row, times `scale`, as bytes: as many as go by sixteens, whose number it returns.
QUOLL_INLINE size_t round_run(const float* in, size_t n, float scale, int8_t* out) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) vst1q_s8(out + i, sixteen_bytes(in + i, scale));
    return i;
}

// The words of a register to dst, `step` bytes apart.
QUOLL_INLINE void store_words(int8x16_t words, uint8_t* dst, ptrdiff_t step) {
    if (step == 4) return vst1q_u8(dst, vreinterpretq_u8_s8(words));
    const int32x4_t x = vreinterpretq_s32_s8(words);
    vst1q_lane_s32((int32_t*)dst, x, 0);
    vst1q_lane_s32((int32_t*)(dst + step), x, 1);
    vst1q_lane_s32((int32_t*)(dst + 2 * step), x, 2);
    vst1q_lane_s32((int32_t*)(dst + 3 * step), x, 3);
}

// Blocks of four channels from src on, those before channel `channel`, as bytes: returns how many
// went together, two where planes of eight channels lie side by side, and in *done how many pixels
// of them went by fours.
template <class Input>
QUOLL_INLINE int round_blocks(const Input& t, int channel, const float* src, uint8_t* dst,
                              size_t* done) {
    const ptrdiff_t block = t.src_block, to = 4 * t.dst_pixel;
    const float scale = t.scale;
    const size_t last = t.pixels & ~(size_t)3;
    *done = last;
    const auto rounds = [&](auto from_step) QUOLL_INLINE_LAMBDA {
        const ptrdiff_t step = from_step();
        for (size_t p = 0; p < last; p += 4, src += 4 * step, dst += to)
            store_words(rounded_bytes(src, step, scale), dst, to / 4);
        return 1;
    };
    if (t.src_pixel != 4) return rounds([&] { return t.src_pixel; });
    if (t.dst_pack != 8 || to != 32 || t.channels - channel < 8 || channel % 8)
        return rounds([] { return 4; });
    for (size_t p = 0; p < last; p += 4, src += 16, dst += 32) {
        const int32x4_t a = vreinterpretq_s32_s8(rounded_bytes(src, 4, scale));
        const int32x4_t b = vreinterpretq_s32_s8(rounded_bytes(src + block, 4, scale));
        const int32x4x2_t both = vzipq_s32(a, b);
        vst1q_u8(dst, vreinterpretq_u8_s32(both.val[0]));
        vst1q_u8(dst + 16, vreinterpretq_u8_s32(both.val[1]));
    }
    return 2;
}

// Four planes from src on, of which `count` exist, as k-groups of bytes; likewise by sixteens.
template <class Input, class T>
QUOLL_INLINE size_t join_planes(const Input& t, const T* src, int count, uint8_t* dst) {
    const ptrdiff_t block = t.src_block, step = t.dst_pixel;  // which the stores cannot change
    const size_t pixels = t.src_pixel == 1 ? t.pixels : 0;
    const float scale = t.scale;
    const auto plane = [&](int i) QUOLL_INLINE_LAMBDA {
        return i < count ? sixteen_bytes(src + i * block, scale) : vdupq_n_s8(0);
    };
    size_t p = 0;
    for (; p + 16 <= pixels; p += 16, src += 16, dst += 16 * step) {
        const int8x16x2_t a = vzipq_s8(plane(0), plane(2)), b = vzipq_s8(plane(1), plane(3));
        const int8x16x2_t first = vzipq_s8(a.val[0], b.val[0]);
        const int8x16x2_t second = vzipq_s8(a.val[1], b.val[1]);
        store_words(first.val[0], dst, step);
        store_words(first.val[1], dst + 4 * step, step);
        store_words(second.val[0], dst + 8 * step, step);
        store_words(second.val[1], dst + 12 * step, step);
    }
    return p;
}

}  // namespace
}  // namespace quoll
