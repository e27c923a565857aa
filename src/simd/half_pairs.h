// Included by vec.h where QUOLL_FLOAT_PAIRS is defined: kernels that are written for floats are then
// compiled for half floats. What such a kernel takes for a float in memory is a pair of them, and a
// vector of four floats is one of eight, with arithmetic of half floats. Coefficients and limits,
// which come as floats, are rounded; other sizes of vectors there are not.
#pragma once

#include <arm_neon.h>

namespace quoll {
namespace simd {
namespace {

struct half8 {
    static constexpr size_t kSize = 4;  // pairs
    float16x8_t v;

    static QUOLL_INLINE half8 load(const float* p) {
        return {vreinterpretq_f16_f32(vld1q_f32(p))};
    }
    static QUOLL_INLINE half8 set(float x) { return {vdupq_n_f16((float16_t)x)}; }
    static QUOLL_INLINE half8 zero() { return set(0.f); }
    QUOLL_INLINE void store(float* p) const { vst1q_f32(p, vreinterpretq_f32_f16(v)); }
    static QUOLL_INLINE half8 load_n(const float* p, size_t n) {
        float part[4] = {};
        memcpy(part, p, min_size(n, 4) * sizeof(float));
        return load(part);
    }
    QUOLL_INLINE void store_n(float* p, size_t n) const {
        float part[4];
        store(part);
        memcpy(p, part, min_size(n, 4) * sizeof(float));
    }

    friend QUOLL_INLINE half8 operator+(half8 a, half8 b) { return {vaddq_f16(a.v, b.v)}; }
    friend QUOLL_INLINE half8 operator-(half8 a, half8 b) { return {vsubq_f16(a.v, b.v)}; }
    friend QUOLL_INLINE half8 operator*(half8 a, half8 b) { return {vmulq_f16(a.v, b.v)}; }
    friend QUOLL_INLINE half8 fma(half8 a, half8 b, half8 c) { return {vfmaq_f16(c.v, a.v, b.v)}; }
    friend QUOLL_INLINE half8 nfma(half8 a, half8 b, half8 c) {
        return {vfmsq_f16(c.v, a.v, b.v)};
    }
    friend QUOLL_INLINE half8 min(half8 a, half8 b) { return {vminq_f16(a.v, b.v)}; }
    friend QUOLL_INLINE half8 max(half8 a, half8 b) { return {vmaxq_f16(a.v, b.v)}; }
    friend QUOLL_INLINE half8 even_lanes(half8 a, half8 b) {
        const float32x4_t pairs =
            vuzp1q_f32(vreinterpretq_f32_f16(a.v), vreinterpretq_f32_f16(b.v));
        return {vreinterpretq_f16_f32(pairs)};
    }
};

template <size_t N>
struct vecf_of {
    using type = vec<float, N>;
};
template <>
struct vecf_of<4> {
    using type = half8;
};
template <size_t N>
using vecf = typename vecf_of<N>::type;

}  // namespace
}  // namespace simd
}  // namespace quoll
