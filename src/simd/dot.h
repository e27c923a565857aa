// Products of small integers, summed in twos and fours: the lanes of a and b are words of two
// signed 16-bit or four 8-bit values.
#pragma once

#include "simd/vec.h"

namespace quoll {
namespace simd {
namespace {

#if HWY_TARGET == HWY_NEON
// Shorter vectors are the lower lanes of a register.
template <size_t N>
QUOLL_INLINE int32x4_t whole_register(veci<N> a) {
    if constexpr (N == 4) {
        return a.v.raw;
    } else {
        return vcombine_s32(a.v.raw, a.v.raw);
    }
}
template <size_t N>
QUOLL_INLINE veci<N> part_of_register(int32x4_t a) {
    if constexpr (N == 4) {
        return {decltype(veci<N>().v)(a)};
    } else {
        return {decltype(veci<N>().v)(vget_low_s32(a))};
    }
}
#endif

// sum + a.low * b.low + a.high * b.high in each lane, of s16 values.
template <size_t N>
QUOLL_INLINE veci<N> dot_s16(veci<N> sum, veci<N> a, veci<N> b) {
    if constexpr (N > native_lanes<int32_t>()) {
        return {dot_s16(sum.lo, a.lo, b.lo), dot_s16(sum.hi, a.hi, b.hi)};
    } else {
#if defined(__AVX512VNNI__)
        __asm__("vpdpwssd %2, %1, %0" : "+v"(sum.v.raw) : "v"(a.v.raw), "v"(b.v.raw));
        return sum;
#elif defined(__AVXVNNI__)
        __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum.v.raw) : "x"(a.v.raw), "x"(b.v.raw));
        return sum;
#elif HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
        // In assembly, since gcc 12 also keeps the sums of tiles in memory when they go through
        // vectors of other types.
        auto product = a.v.raw;
        __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                : "+v"(sum.v.raw), "=&v"(product)
                : "v"(a.v.raw), "v"(b.v.raw));
        return sum;
#elif HWY_TARGET == HWY_SSE4
        return sum + veci<N>{{_mm_madd_epi16(a.v.raw, b.v.raw)}};
#elif HWY_TARGET == HWY_NEON
        const int16x8_t x = vreinterpretq_s16_s32(whole_register(a)),
                        y = vreinterpretq_s16_s32(whole_register(b));
        const int32x4_t first = vmull_s16(vget_low_s16(x), vget_low_s16(y));
#if defined(__aarch64__)
        const int32x4_t both = vpaddq_s32(first, vmull_high_s16(x, y));
#else
        const int32x4_t second = vmull_s16(vget_high_s16(x), vget_high_s16(y));
        const int32x4_t both = vcombine_s32(vpadd_s32(vget_low_s32(first), vget_high_s32(first)),
                                            vpadd_s32(vget_low_s32(second), vget_high_s32(second)));
#endif
        return sum + part_of_register<N>(both);
#else
        const auto low = [](veci<N> x) {
            return x.template shift_left<16>().template shift_right<16>();
        };
        return sum + low(a) * low(b) + a.template shift_right<16>() * b.template shift_right<16>();
#endif
    }
}

// sum + the four products of the values of a with the s8 values of b, in each lane; 128 bits at
// least, a register at most. What a has: u8 values or s8 values, or neither.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr bool kHasDotU8S8 = true, kHasDotS8S8 = false;
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr bool kHasDotU8S8 = false, kHasDotS8S8 = true;
#else
constexpr bool kHasDotU8S8 = false, kHasDotS8S8 = false;
#endif
constexpr bool kHasDotOfFour = kHasDotU8S8 || kHasDotS8S8;
// Assembly as above.
template <class V>
QUOLL_INLINE V dot_of_four(V sum, [[maybe_unused]] V a, [[maybe_unused]] V b) {
    static_assert(V::kSize >= 4 && V::kSize <= kLanes, "part of a register");
#if defined(__AVX512VNNI__)
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.v.raw) : "v"(a.v.raw), "v"(b.v.raw));
#elif defined(__AVXVNNI__)
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.v.raw) : "x"(a.v.raw), "x"(b.v.raw));
#elif defined(__ARM_FEATURE_DOTPROD)
    sum.v.raw = vdotq_s32(sum.v.raw, vreinterpretq_s8_s32(a.v.raw), vreinterpretq_s8_s32(b.v.raw));
#endif
    return sum;
}

// The products of the u8 values of a with the s8 values of b, two of which are added up in each
// 16-bit half of a lane, where they must fit; and what is added to such halves, modulo 2^16.
constexpr bool kHasBytePairs = HWY_TARGET == HWY_AVX2;
template <class V>
QUOLL_INLINE V multiply_byte_pairs([[maybe_unused]] V a, [[maybe_unused]] V b) {
    static_assert(V::kSize == kLanes, "a register");
    V product = a;
#if HWY_TARGET == HWY_AVX2
    __asm__("vpmaddubsw %2, %1, %0" : "=x"(product.v.raw) : "x"(a.v.raw), "x"(b.v.raw));
#endif
    return product;
}
template <class V>
QUOLL_INLINE V add_byte_pairs(V sum, [[maybe_unused]] V a, [[maybe_unused]] V b) {
    static_assert(V::kSize == kLanes, "a register");
#if HWY_TARGET == HWY_AVX2
    // Assembly as above.
    auto product = a.v.raw;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
            : "+x"(sum.v.raw), "=&x"(product)
            : "x"(a.v.raw), "x"(b.v.raw));
#endif
    return sum;
}

// The i-th signed 8-bit value of each word, or 4-bit one of words whose byte i % 4 holds values
// i % 4 and, in its upper half, i % 4 + 4; as a float.
template <int bits, int i, size_t N>
QUOLL_INLINE vecf<N> signed_part(veci<N> word) {
    constexpr int at = bits == 4 ? i % 4 * 8 + i / 4 * 4 : i * bits;
#if HWY_TARGET == HWY_AVX3
    if constexpr (bits == 4 && N == 16) {
        // A permutation looks at four bits of its indexes.
        const __m512 values =
            _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
        return {{_mm512_permutexvar_ps(_mm512_srli_epi32(word.v.raw, at), values)}};
    }
#endif
    return to_float(word.template shift_left<32 - bits - at>().template shift_right<32 - bits>());
}

}  // namespace
}  // namespace simd
}  // namespace quoll
