// 1 / sqrt(x) without the division and the root, where the machine has a good approximation.
#pragma once

#include "simd/vec.h"

namespace quoll {
namespace simd {
namespace {

// Whether fast_rsqrt is worth it: one Newton step makes it good for f32.
constexpr bool kHasFastRsqrt = HWY_TARGET == HWY_AVX3;

// Relative error below 2e-7 for 2^-100 <= x <= 2^100; anything beyond.
template <size_t N>
QUOLL_INLINE vecf<N> fast_rsqrt(vecf<N> x) {
    using V = vecf<N>;
#if HWY_TARGET == HWY_AVX3
    V r;
    if constexpr (N == 16) {
        r.v.raw = _mm512_rsqrt14_ps(x.v.raw);
    } else if constexpr (N == 8) {
        r.v.raw = _mm256_rsqrt14_ps(x.v.raw);
    } else {
        static_assert(N == 4, "one register");
        r.v.raw = _mm_rsqrt14_ps(x.v.raw);
    }
    const V half = V::set(.5f) * r;
    return fma(half, nfma(x * r, r, V::set(1.f)), r);
#else
    return V::set(1.f) / sqrt(x);
#endif
}

}  // namespace
}  // namespace simd
}  // namespace quoll
