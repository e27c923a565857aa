// The transforms of the weights, of the input and of the sums.
#pragma once

#include "layer/cpu/winograd/winograd.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

constexpr float kA = 0.70710678f, kB = 1.41421356f;  // the points; kA * kB = 1

// B^T d: row 0 is the polynomial (x^2 - 1/2)(x^2 - 2), row 5 x times that, row i that of the point
// p without its own factor: x (x + p) (x^2 - q^2) with the other pair q.
template <class V>
QUOLL_INLINE void input_1d(const V (&d)[6], V (&t)[6]) {
    const V even_a = nfma(V::set(2.f), d[2], d[4]),
            odd_a = fma(V::set(kA), d[3], d[1] * V::set(-kB));
    const V even_b = nfma(V::set(.5f), d[2], d[4]),
            odd_b = fma(V::set(kB), d[3], d[1] * V::set(-kA));
    t[0] = fma(V::set(-2.5f), d[2], d[0] + d[4]);
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = fma(V::set(-2.5f), d[3], d[1] + d[5]);
}

// A^T m: row i holds the i-th powers of the points.
template <class V>
QUOLL_INLINE void output_1d(const V (&m)[6], V (&y)[4]) {
    const V sum_a = m[1] + m[2], difference_a = m[1] - m[2];
    const V sum_b = m[3] + m[4], difference_b = m[3] - m[4];
    y[0] = m[0] + sum_a + sum_b;
    y[1] = fma(V::set(kB), difference_b, V::set(kA) * difference_a);
    y[2] = fma(V::set(2.f), sum_b, V::set(.5f) * sum_a);
    y[3] = fma(V::set(2.f * kB), difference_b, fma(V::set(.5f * kA), difference_a, m[5]));
}

constexpr size_t kWindows = 8;  // that share a register of doubles, or a few

// G w: row i of G is [1, p, p^2] / M'(p) for point p of M(x) = x (x^2 - 1/2) (x^2 - 2). Points p
// and -p share the sums of even and of odd powers.
QUOLL_INLINE void weights_1d(const double (*w)[kWindows], size_t w_step, double (*t)[kWindows],
                             size_t t_step) {
    constexpr double a = 0.70710678118654752440, b = 1.41421356237309504880;
    for (size_t i = 0; i < kWindows; i++) {
        const double w0 = w[0][i], w1 = w[w_step][i], w2 = w[2 * w_step][i];
        const double even_a = (w0 + .5 * w2) / -1.5, odd_a = w1 * (a / -1.5);
        const double even_b = (w0 + 2 * w2) / 6, odd_b = w1 * (b / 6);
        t[0][i] = w0;
        t[t_step][i] = even_a + odd_a;
        t[2 * t_step][i] = even_a - odd_a;
        t[3 * t_step][i] = even_b + odd_b;
        t[4 * t_step][i] = even_b - odd_b;
        t[5 * t_step][i] = w2;
    }
}

void weights(const float* windows, size_t count, float* out, size_t step) {
    for (size_t p = 0; p < count; p += kWindows) {
        const size_t n = s::min_size(kWindows, count - p);
        double w[9][kWindows] = {}, rows[18][kWindows], u[kWinogradPoints][kWindows];
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < 9; j++) w[j][i] = windows[(p + i) * 9 + j];
        for (size_t x = 0; x < 3; x++) weights_1d(w + x, 3, rows + x, 3);
        for (size_t y = 0; y < 6; y++) weights_1d(rows + 3 * y, 1, u + 6 * y, 1);
        for (size_t j = 0; j < kWinogradPoints; j++)
            for (size_t i = 0; i < n; i++) out[j * step + p + i] = (float)u[j][i];
    }
}

void input(const float* in, ptrdiff_t row, float* out, size_t step) {
    constexpr size_t L = s::kLanes;
    using V = s::vecf<L>;
    V columns[6][6];  // [x][y] after the pass over y
    const float* rows[6];
    for (size_t y = 0; y < 6; y++) rows[y] = in + (ptrdiff_t)y * row;
#pragma GCC unroll 6
    for (size_t x = 0; x < 6; x++) {
        V d[6];
#pragma GCC unroll 6
        for (size_t y = 0; y < 6; y++) d[y] = V::load(rows[y] + x * L);
        input_1d(d, columns[x]);
    }
#pragma GCC unroll 6
    for (size_t y = 0; y < 6; y++) {
        V d[6], t[6];
#pragma GCC unroll 6
        for (size_t x = 0; x < 6; x++) d[x] = columns[x][y];
        input_1d(d, t);
#pragma GCC unroll 6
        for (size_t x = 0; x < 6; x++, out += step) t[x].store(out);
    }
}

// The pass over y.
template <class V>
QUOLL_INLINE void output_columns(const float* in, size_t step, V (&columns)[6][4]) {
    const float* from[6];
    for (size_t y = 0; y < 6; y++) from[y] = in + y * 6 * step;
#pragma GCC unroll 6
    for (size_t x = 0; x < 6; x++) {
        V m[6];
#pragma GCC unroll 6
        for (size_t y = 0; y < 6; y++) m[y] = V::load(from[y]), from[y] += step;
        output_1d(m, columns[x]);
    }
}

// The activation of a row of outputs.
template <class V, size_t count>
QUOLL_INLINE void activate_row(V (&row)[count], float low, float high, float slope) {
    if (slope != 1.f)
        s::unroll<count>([&](auto x) QUOLL_INLINE_LAMBDA {
            row[x()] = max(row[x()], row[x()] * V::set(slope));
        });
    else
        s::unroll<count>([&](auto x) QUOLL_INLINE_LAMBDA {
            row[x()] = min(V::set(high), max(V::set(low), row[x()]));
        });
}

// A whole tile.
template <bool adds>
QUOLL_INLINE void output_whole(const float* in, size_t step, const float* bias, const float* added,
                               float* out, ptrdiff_t row, float low, float high, float slope) {
    constexpr size_t L = s::kLanes;
    using V = s::vecf<L>;
    V columns[6][4];
    output_columns(in, step, columns);
    const V offset = V::load(bias);
#pragma GCC unroll 4
    for (size_t y = 0; y < 4; y++, out += row) {
        V m[6], result[4];
#pragma GCC unroll 6
        for (size_t x = 0; x < 6; x++) m[x] = columns[x][y];
        output_1d(m, result);
#pragma GCC unroll 4
        for (size_t x = 0; x < 4; x++) {
            result[x] = result[x] + offset;
            if constexpr (adds) result[x] = result[x] + V::load(added + x * L);
        }
        activate_row(result, low, high, slope);
#pragma GCC unroll 4
        for (size_t x = 0; x < 4; x++) result[x].store(out + x * L);
        if constexpr (adds) added += row;
    }
}

// One that reaches over the right or lower edge.
void output_part(const float* in, size_t step, const float* bias, const float* added, float* out,
                 ptrdiff_t row, int w, int h, float low, float high, float slope) {
    constexpr size_t L = s::kLanes;
    using V = s::vecf<L>;
    V columns[6][4];
    output_columns(in, step, columns);
    const V offset = V::load(bias);
    for (int y = 0; y < h; y++) {
        V m[6], result[4];
        for (size_t x = 0; x < 6; x++) m[x] = columns[x][y];
        output_1d(m, result);
        for (int x = 0; x < w; x++) {
            V value[] = {result[x] + offset};
            if (added) value[0] = value[0] + V::load(added + y * row + x * (ptrdiff_t)L);
            activate_row(value, low, high, slope);
            value[0].store(out + y * row + x * (ptrdiff_t)L);
        }
    }
}

void output(const float* in, size_t step, const float* bias, const float* added, float* out,
            ptrdiff_t row, int w, int h, float low, float high, float slope) {
    if (w < kWinogradOut || h < kWinogradOut)
        return output_part(in, step, bias, added, out, row, w, h, low, high, slope);
    if (added) return output_whole<true>(in, step, bias, added, out, row, low, high, slope);
    output_whole<false>(in, step, bias, added, out, row, low, high, slope);
}

}  // namespace
}  // namespace quoll
