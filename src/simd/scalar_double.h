// One lane of double where vectors have none: NEON of 32-bit ARM, Highway's WebAssembly. vec.h includes it; longer vectors
// are halves as everywhere.
#pragma once

#include <math.h>

namespace quoll {
namespace simd {
namespace {

template <>
struct mask<double, 1, true> {
    bool m;
    friend QUOLL_INLINE mask operator&(mask a, mask b) { return {a.m && b.m}; }
    friend QUOLL_INLINE mask operator|(mask a, mask b) { return {a.m || b.m}; }
    friend QUOLL_INLINE mask operator!(mask a) { return {!a.m}; }
    friend QUOLL_INLINE bool any(mask a) { return a.m; }
};

template <>
struct vec<double, 1, true> {
    using Mask = mask<double, 1>;
    static constexpr size_t kSize = 1;
    double v;

    static QUOLL_INLINE vec load(const double* p) { return {*p}; }
    static QUOLL_INLINE vec set(double x) { return {x}; }
    static QUOLL_INLINE vec zero() { return {0.}; }
    static QUOLL_INLINE vec iota(double first) { return {first}; }
    QUOLL_INLINE void store(double* p) const { *p = v; }
    static QUOLL_INLINE vec load_n(const double* p, size_t n) { return {n ? *p : 0.}; }
    QUOLL_INLINE void store_n(double* p, size_t n) const {
        if (n) *p = v;
    }

    friend QUOLL_INLINE vec operator+(vec a, vec b) { return {a.v + b.v}; }
    friend QUOLL_INLINE vec operator-(vec a, vec b) { return {a.v - b.v}; }
    friend QUOLL_INLINE vec operator*(vec a, vec b) { return {a.v * b.v}; }
    friend QUOLL_INLINE vec operator/(vec a, vec b) { return {a.v / b.v}; }
    friend QUOLL_INLINE vec operator-(vec a) { return {-a.v}; }
    friend QUOLL_INLINE Mask operator<(vec a, vec b) { return {a.v < b.v}; }
    friend QUOLL_INLINE Mask operator>(vec a, vec b) { return {a.v > b.v}; }
    friend QUOLL_INLINE Mask operator<=(vec a, vec b) { return {a.v <= b.v}; }
    friend QUOLL_INLINE Mask operator>=(vec a, vec b) { return {a.v >= b.v}; }
    friend QUOLL_INLINE Mask operator==(vec a, vec b) { return {a.v == b.v}; }
    friend QUOLL_INLINE Mask operator!=(vec a, vec b) { return {a.v != b.v}; }

    friend QUOLL_INLINE vec fma(vec a, vec b, vec c) { return {__builtin_fma(a.v, b.v, c.v)}; }
    friend QUOLL_INLINE vec nfma(vec a, vec b, vec c) { return {__builtin_fma(-a.v, b.v, c.v)}; }
    friend QUOLL_INLINE vec select(Mask m, vec a, vec b) { return m.m ? a : b; }
    friend QUOLL_INLINE vec min(vec a, vec b) { return {a.v < b.v ? a.v : b.v}; }
    friend QUOLL_INLINE vec max(vec a, vec b) { return {a.v > b.v ? a.v : b.v}; }
    friend QUOLL_INLINE vec abs(vec a) { return {__builtin_fabs(a.v)}; }
    friend QUOLL_INLINE vec sqrt(vec a) { return {::sqrt(a.v)}; }
    friend QUOLL_INLINE vec round(vec a) { return {::nearbyint(a.v)}; }
    friend QUOLL_INLINE vec floor(vec a) { return {::floor(a.v)}; }
    friend QUOLL_INLINE vec ceil(vec a) { return {::ceil(a.v)}; }
    friend QUOLL_INLINE vec trunc(vec a) { return {::trunc(a.v)}; }
    friend QUOLL_INLINE vec copysign(vec a, vec b) { return {__builtin_copysign(a.v, b.v)}; }
    friend QUOLL_INLINE double reduce_add(vec a) { return a.v; }
    friend QUOLL_INLINE double reduce_max(vec a) { return a.v; }
    friend QUOLL_INLINE double reduce_min(vec a) { return a.v; }
};

}  // namespace
}  // namespace simd
}  // namespace quoll
