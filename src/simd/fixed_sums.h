// Sums of two rows of bytes, each times a factor, in fixed point.
#pragma once

#include "simd/vec.h"

namespace quoll {
namespace simd {
namespace {

// As many bytes as a register holds: ((a A + b B) 2^8 + C) >> shift, limited to [low, high]. A, B
// and C are of 14 bits more than they count for, in two parts: A = high 2^14 + low; factors hold
// A's part in their lower half and B's in the upper one.
struct FixedSums {
    int32_t high_factors, low_factors, high_start, low_start;
    int shift, low, high;
};

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
constexpr bool kHasFixedSums = true;

#if HWY_TARGET == HWY_AVX3
#define QUOLL_WIDE(name) _mm512_##name
typedef __m512i WideBytes;
QUOLL_INLINE WideBytes load_wide(const int8_t* p) { return _mm512_loadu_si512(p); }
QUOLL_INLINE void store_wide(WideBytes x, int8_t* p) { _mm512_storeu_si512(p, x); }
QUOLL_INLINE WideBytes wide_zeros() { return _mm512_setzero_si512(); }
#else
#define QUOLL_WIDE(name) _mm256_##name
typedef __m256i WideBytes;
QUOLL_INLINE WideBytes load_wide(const int8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
QUOLL_INLINE void store_wide(WideBytes x, int8_t* p) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
}
QUOLL_INLINE WideBytes wide_zeros() { return _mm256_setzero_si256(); }
#endif

// sums + products of 16-bit neighbours.
QUOLL_INLINE WideBytes add_pairs(WideBytes sums, WideBytes a, WideBytes b) {
#if HWY_TARGET == HWY_AVX3 && defined(__AVX512VNNI__)
    return _mm512_dpwssd_epi32(sums, a, b);
#else
    return QUOLL_WIDE(add_epi32)(sums, QUOLL_WIDE(madd_epi16)(a, b));
#endif
}

QUOLL_INLINE void fixed_sums(const int8_t* a, const int8_t* b, const FixedSums& t, int8_t* out) {
    const WideBytes x = load_wide(a), y = load_wide(b), zeros = wide_zeros();
    const WideBytes first = QUOLL_WIDE(unpacklo_epi8)(x, y),
                    second = QUOLL_WIDE(unpackhi_epi8)(x, y);
    const auto sum = [&](WideBytes pairs) QUOLL_INLINE_LAMBDA {
        const auto all = [](int32_t v) QUOLL_INLINE_LAMBDA { return QUOLL_WIDE(set1_epi32)(v); };
        const WideBytes low = add_pairs(all(t.low_start), pairs, all(t.low_factors));
        const WideBytes start =
            QUOLL_WIDE(add_epi32)(all(t.high_start), QUOLL_WIDE(srai_epi32)(low, 14));
        return QUOLL_WIDE(srav_epi32)(add_pairs(start, pairs, all(t.high_factors)), all(t.shift));
    };
    // Bytes of the higher halves of 16 bits: times 2^8. Packing undoes the order of unpacking.
    const auto words = [&](WideBytes pairs) QUOLL_INLINE_LAMBDA {
        return QUOLL_WIDE(packs_epi32)(sum(QUOLL_WIDE(unpacklo_epi8)(zeros, pairs)),
                                       sum(QUOLL_WIDE(unpackhi_epi8)(zeros, pairs)));
    };
    WideBytes bytes = QUOLL_WIDE(packs_epi16)(words(first), words(second));
    bytes = QUOLL_WIDE(min_epi8)(bytes, QUOLL_WIDE(set1_epi8)((char)t.high));
    store_wide(QUOLL_WIDE(max_epi8)(bytes, QUOLL_WIDE(set1_epi8)((char)t.low)), out);
}
#undef QUOLL_WIDE
#else
constexpr bool kHasFixedSums = false;
QUOLL_INLINE void fixed_sums(const int8_t*, const int8_t*, const FixedSums&, int8_t*) {}
#endif

}  // namespace
}  // namespace simd
}  // namespace quoll
