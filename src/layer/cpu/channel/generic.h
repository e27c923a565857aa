// The functions of the channel family, and the loop over data with repeating parameters.
#pragma once

#include "layer/cpu/channel/channel.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

struct Affine {
    template <class V>
    static QUOLL_INLINE V apply(V x, V a, V b) {
        return fma(x, a, b);
    }
};

struct AffineRelu {
    template <class V>
    static QUOLL_INLINE V apply(V x, V a, V b) {
        return max(V::zero(), fma(x, a, b));  // a NaN stays one
    }
};

struct PRelu {
    template <class V>
    static QUOLL_INLINE V apply(V x, V a, V) {
        return select(x < V::zero(), x * a, x);
    }
};

// The parameters of N neighbouring values; period divides N.
template <size_t N>
QUOLL_INLINE s::vecf<N> repeated(const float* p, size_t period, float absent) {
    float lanes[N];
    for (size_t i = 0; i < N; i++) lanes[i] = p ? p[i % period] : absent;
    return s::vecf<N>::load(lanes);
}

// Parameters stay in registers.
template <class F, size_t N>
QUOLL_INLINE void channel_short(float* data, size_t n, size_t period, const float* a,
                                const float* b) {
    using V = s::vecf<N>;
    const V va = repeated<N>(a, period, 1.f), vb = repeated<N>(b, period, 0.f);
    size_t i = 0;
    for (; i + 4 * N <= n; i += 4 * N) {
        V x[4];
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) x[k] = V::load(data + i + k * N);
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) F::apply(x[k], va, vb).store(data + i + k * N);
    }
    for (; i < n; i += N) F::apply(V::load_n(data + i, n - i), va, vb).store_n(data + i, n - i);
}

template <class F>
QUOLL_INLINE void channel_long(float* data, size_t n, size_t period, const float* a,
                               const float* b) {
    using V = s::vecf<s::kLanes>;
    for (size_t start = 0; start < n; start += period) {
        float* p = data + start;
        for (size_t i = 0; i < period; i += s::kLanes) {
            const size_t left = period - i;
            const V va = a ? V::load_n(a + i, left) : V::set(1.f);
            const V vb = b ? V::load_n(b + i, left) : V::zero();
            F::apply(V::load_n(p + i, left), va, vb).store_n(p + i, left);
        }
    }
}

template <class F>
void channel_kernel(float* data, size_t n, size_t period, const float* a, const float* b) {
    if (period <= s::kLanes && s::kLanes % period == 0) {
        channel_short<F, s::kLanes>(data, n, period, a, b);
    } else if (period == 2 * s::kLanes) {
        channel_short<F, 2 * s::kLanes>(data, n, period, a, b);
    } else if (period == 4 * s::kLanes) {
        channel_short<F, 4 * s::kLanes>(data, n, period, a, b);
    } else {
        channel_long<F>(data, n, period, a, b);
    }
}

}  // namespace
}  // namespace quoll
