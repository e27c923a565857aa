// Pooling loops on vectors of any width.
#pragma once

#include <math.h>

#include <type_traits>

#include "layer/cpu/pool/pool.h"
#include "simd/math.h"

namespace quoll {
namespace {

namespace s = simd;

struct Max {
    template <class V>
    static QUOLL_INLINE V first() {
        return V::set(-INFINITY);
    }
    template <class V>
    static QUOLL_INLINE V join(V a, V b) {
        return s::maximum(a, b);
    }
    template <class V>
    static QUOLL_INLINE V finish(V a, float scale) {
        return max(V::set(scale), a);
    }
    template <class V>
    static QUOLL_INLINE float across(V a) {
        float lanes[V::kSize];
        a.store(lanes);
        float most = lanes[0];
        for (size_t i = 1; i < V::kSize; i++)
            most = lanes[i] > most || isnan(lanes[i]) ? lanes[i] : most;
        return most;
    }
};

struct Average {
    template <class V>
    static QUOLL_INLINE V first() {
        return V::zero();
    }
    template <class V>
    static QUOLL_INLINE V join(V a, V b) {
        return a + b;
    }
    template <class V>
    static QUOLL_INLINE V finish(V a, float scale) {
        return a * V::set(scale);
    }
    template <class V>
    static QUOLL_INLINE float across(V a) {
        return reduce_add(a);
    }
};

// One window. Four partial results, because each join waits for the one before.
template <class Op, size_t N>
QUOLL_INLINE void pool_one(const PoolWindows& w, int index) {
    using V = s::vecf<N>;
    V part[4] = {Op::template first<V>(), Op::template first<V>(), Op::template first<V>(),
                 Op::template first<V>()};
    const float* row = w.in + (size_t)index * w.stride * N;
    for (int y = 0; y < w.rows; y++, row += w.row_step) {
        int x = 0;
        for (; x + 4 <= w.columns; x += 4)
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                part[i] = Op::join(V::load(row + (size_t)(x + i) * N), part[i]);
        for (; x < w.columns; x++) part[0] = Op::join(V::load(row + (size_t)x * N), part[0]);
    }
    const V whole = Op::join(Op::join(part[0], part[1]), Op::join(part[2], part[3]));
    Op::finish(whole, w.scale).store(w.out + (size_t)index * N);
}

// Windows index to index + 3.
template <class Op, size_t N>
QUOLL_INLINE void pool_four(const PoolWindows& w, int index) {
    using V = s::vecf<N>;
    V sum[4] = {Op::template first<V>(), Op::template first<V>(), Op::template first<V>(),
                Op::template first<V>()};
    const size_t stride = (size_t)w.stride * N;
    const float* row = w.in + index * stride;
    for (int y = 0; y < w.rows; y++, row += w.row_step) {
        for (int x = 0; x < w.columns; x++) {
#pragma GCC unroll 4
            for (int t = 0; t < 4; t++)
                sum[t] = Op::join(V::load(row + (size_t)x * N + t * stride), sum[t]);
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < 4; t++) Op::finish(sum[t], w.scale).store(w.out + (size_t)(index + t) * N);
}

// The same for K columns and stride S: each element is loaded once a row.
template <class Op, size_t N, int K, int S>
QUOLL_INLINE void pool_four_fixed(const PoolWindows& w, int index) {
    using V = s::vecf<N>;
    V sum[4] = {Op::template first<V>(), Op::template first<V>(), Op::template first<V>(),
                Op::template first<V>()};
    const float* row = w.in + (size_t)index * S * N;
    for (int y = 0; y < w.rows; y++, row += w.row_step) {
#pragma GCC unroll 16
        for (int i = 0; i < 3 * S + K; i++) {
            const V v = V::load(row + i * N);
#pragma GCC unroll 4
            for (int t = 0; t < 4; t++)
                if (i >= t * S && i < t * S + K) sum[t] = Op::join(v, sum[t]);
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < 4; t++) Op::finish(sum[t], w.scale).store(w.out + (size_t)(index + t) * N);
}

// The largest of a column of three rows.
template <size_t N>
QUOLL_INLINE s::vecf<N> largest_of_three(const float* a, const float* b, const float* c) {
    using V = s::vecf<N>;
    return s::maximum(s::maximum(V::load(a), V::load(b)), V::load(c));
}

// Windows 3 x 3 of stride 2, four at a time: each column's maximum once, the last one's for the
// next four too. Returns how many are done.
template <size_t N>
QUOLL_INLINE int largest_of_nine(const PoolWindows& w) {
    using V = s::vecf<N>;
    if (w.count < 4) return 0;
    const float *a = w.in, *b = a + w.row_step, *c = b + w.row_step;
    float* out = w.out;
    V last = largest_of_three<N>(a, b, c);
    int i = 0;
    for (; i + 4 <= w.count; i += 4, a += 8 * N, b += 8 * N, c += 8 * N, out += 4 * N) {
        V column[9];
        column[0] = last;
#pragma GCC unroll 8
        for (int x = 1; x < 9; x++)
            column[x] = largest_of_three<N>(a + x * N, b + x * N, c + x * N);
        last = column[8];
#pragma GCC unroll 4
        for (int t = 0; t < 4; t++) {
            const V most =
                s::maximum(s::maximum(column[2 * t], column[2 * t + 1]), column[2 * t + 2]);
            Max::finish(most, w.scale).store(out + (size_t)t * N);
        }
    }
    return i;
}

template <class Op, size_t N, int K, int S>
void pool_windows(const PoolWindows& windows) {
    const PoolWindows w = windows;  // what no store of results can change
    int i = 0;
    if constexpr (std::is_same_v<Op, Max> && K == 3 && S == 2) {
        if (w.rows == 3) i = largest_of_nine<N>(w);
    }
    for (; i + 4 <= w.count; i += 4) {
        if constexpr (K > 0) {
            pool_four_fixed<Op, N, K, S>(w, i);
        } else {
            pool_four<Op, N>(w, i);
        }
    }
    for (; i < w.count; i++) pool_one<Op, N>(w, i);
}

template <class Op, size_t N, int K, int S>
constexpr PoolWindowsKernel pool_windows_kernel() {
    if constexpr (N <= s::kLanes) {
        return &pool_windows<Op, N, K, S>;
    } else {
        return nullptr;
    }
}

// ---------------------------------------------------------------- planar

template <class Op>
void pool_rows(const float* in, size_t row_step, int rows, float* out, size_t n) {
    using V = s::vecf<s::kLanes>;
    for (size_t x = 0; x < n; x += s::kLanes) {
        V sum = Op::template first<V>();
        for (int y = 0; y < rows; y++) sum = Op::join(V::load_n(in + y * row_step + x, n - x), sum);
        sum.store_n(out + x, n - x);
    }
}

template <class Op>
void pool_across(const PoolWindows& w) {
    using V = s::vecf<s::kLanes>;
    using One = s::vecf<1>;
    int i = 0;
    if (w.stride == 1) {
        for (; i + (int)s::kLanes <= w.count; i += (int)s::kLanes) {
            V sum = Op::template first<V>();
            for (int x = 0; x < w.columns; x++) sum = Op::join(V::load(w.in + i + x), sum);
            Op::finish(sum, w.scale).store(w.out + i);
        }
    }
    for (; i < w.count; i++) {
        const float* in = w.in + (size_t)i * w.stride;
        One sum = Op::template first<One>();
        for (int x = 0; x < w.columns; x++) sum = Op::join(One::load(in + x), sum);
        Op::finish(sum, w.scale).store(w.out + i);
    }
}

template <class Op>
float pool_run(const float* in, size_t n, float scale) {
    using V = s::vecf<s::kLanes>;
    using One = s::vecf<1>;
    V part[4] = {Op::template first<V>(), Op::template first<V>(), Op::template first<V>(),
                 Op::template first<V>()};
    size_t i = 0;
    for (; i + 4 * s::kLanes <= n; i += 4 * s::kLanes)
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) part[k] = Op::join(V::load(in + i + k * s::kLanes), part[k]);
    for (; i + s::kLanes <= n; i += s::kLanes) part[0] = Op::join(V::load(in + i), part[0]);
    One rest = Op::template first<One>();
    for (; i < n; i++) rest = Op::join(One::load(in + i), rest);
    const V whole = Op::join(Op::join(part[0], part[1]), Op::join(part[2], part[3]));
    float out;
    Op::finish(Op::join(One::set(Op::across(whole)), rest), scale).store(&out);
    return out;
}

template <class Op>
constexpr PoolPlanarKernels pool_planar_kernels() {
    return {&pool_rows<Op>, &pool_across<Op>, &pool_run<Op>};
}

}  // namespace
}  // namespace quoll
