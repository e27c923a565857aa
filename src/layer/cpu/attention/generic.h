// Loops of the attention family.
#pragma once

#include "layer/cpu/attention/attention.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

// R rows at once: several streams, and as many sums that wait for no other.
template <size_t R>
QUOLL_INLINE void dot_group(const float* x, size_t n, const float* rows, size_t step, float scale,
                            float* out) {
    using V = s::vecf<s::kLanes>;
    V sum[R];
    s::unroll<R>([&](auto r) QUOLL_INLINE_LAMBDA { sum[r] = V::zero(); });
    size_t i = 0;
    for (; i + s::kLanes <= n; i += s::kLanes) {
        const V a = V::load(x + i);
        s::unroll<R>([&](auto r) QUOLL_INLINE_LAMBDA {
            sum[r] = fma(a, V::load(rows + r() * step + i), sum[r]);
        });
    }
    if (i < n) {
        const V a = V::load_n(x + i, n - i);
        s::unroll<R>([&](auto r) QUOLL_INLINE_LAMBDA {
            sum[r] = fma(a, V::load_n(rows + r() * step + i, n - i), sum[r]);
        });
    }
    s::unroll<R>([&](auto r) QUOLL_INLINE_LAMBDA { out[r] = scale * reduce_add(sum[r]); });
}

void dot_rows(const float* x, size_t n, const float* rows, size_t step, size_t count, float scale,
              float* out) {
    size_t j = 0;
    for (; j + 8 <= count; j += 8) dot_group<8>(x, n, rows + j * step, step, scale, out + j);
    for (; j < count; j++) dot_group<1>(x, n, rows + j * step, step, scale, out + j);
}

// R vectors of the result; two sums each, for the even and the odd rows.
template <size_t R>
QUOLL_INLINE void sum_group(const float* x, size_t count, const float* rows, size_t step, size_t n,
                            float scale, float* out) {
    using V = s::vecf<s::kLanes>;
    V even[R], odd[R];
    s::unroll<R>([&](auto r) QUOLL_INLINE_LAMBDA { even[r] = odd[r] = V::zero(); });
    const auto add = [&](V* sum, size_t j) QUOLL_INLINE_LAMBDA {
        const V a = V::set(x[j]);
        const float* row = rows + j * step;
        s::unroll<R>([&](auto r) QUOLL_INLINE_LAMBDA {
            const size_t i = r() * s::kLanes;
            sum[r] = fma(a, R > 1 ? V::load(row + i) : V::load_n(row + i, n), sum[r]);
        });
    };
    size_t j = 0;
    for (; j + 2 <= count; j += 2) {
        add(even, j);
        add(odd, j + 1);
    }
    if (j < count) add(even, j);
    s::unroll<R>([&](auto r) QUOLL_INLINE_LAMBDA {
        const V y = (even[r] + odd[r]) * V::set(scale);
        const size_t i = r() * s::kLanes;
        y.store_n(out + i, R > 1 ? s::kLanes : n);
    });
}

void sum_rows(const float* x, size_t count, const float* rows, size_t step, size_t n, float scale,
              float* out) {
    constexpr size_t L = s::kLanes;
    size_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L)
        sum_group<4>(x, count, rows + i, step, 4 * L, scale, out + i);
    for (; i < n; i += L)
        sum_group<1>(x, count, rows + i, step, s::min_size(n - i, L), scale, out + i);
}

void sum_grid(const float* rows, size_t height, const float* columns, size_t width, float* out) {
    using V = s::vecf<s::kLanes>;
    for (size_t y = 0; y < height; y++, out += width) {
        const V row = V::set(rows[y]);
        size_t x = 0;
        for (; x + s::kLanes <= width; x += s::kLanes) (row + V::load(columns + x)).store(out + x);
        if (x < width) (row + V::load_n(columns + x, width - x)).store_n(out + x, width - x);
    }
}

void turn_halves(const float* x, const float* c, const float* sine, size_t half, size_t second,
                 float* out) {
    using V = s::vecf<s::kLanes>;
    for (size_t i = 0; i < half; i += s::kLanes) {
        const size_t left = half - i;
        const V x0 = V::load_n(x + i, left), x1 = V::load_n(x + half + i, left);
        const V c0 = V::load_n(c + i, left), s0 = V::load_n(sine + i, left);
        const V c1 = V::load_n(c + second + i, left), s1 = V::load_n(sine + second + i, left);
        (x0 * c0 - x1 * s0).store_n(out + i, left);
        (x0 * s1 + x1 * c1).store_n(out + half + i, left);
    }
}

// Left to the compiler, whose shuffles of pairs are as good as any here.
void turn_pairs(const float* x, const float* c, const float* sine, size_t half, size_t,
                float* __restrict out) {
    for (size_t i = 0; i < half; i++) {
        const float x0 = x[2 * i], x1 = x[2 * i + 1];
        out[2 * i] = x0 * c[i] - x1 * sine[i];
        out[2 * i + 1] = x0 * sine[i] + x1 * c[i];
    }
}

}  // namespace
}  // namespace quoll
