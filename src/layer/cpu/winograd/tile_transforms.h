// The transforms of tiles of 2, 3, 4 or 6 outputs along each axis, whose points are of one set:
// first all columns, then all rows, through a buffer.
#pragma once

#include "layer/cpu/winograd/generic.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

// The points of a tile of M outputs in the order of the functions below, as ids of
// kWinogradTilePoints.
template <int M>
struct WinogradTilePoints {
    static constexpr int kIds[] = {0, 1, 2, 3, 4, 5, 6, 7};
};
template <>
struct WinogradTilePoints<2> {
    static constexpr int kIds[] = {0, 1, 2, 5};
};
template <>
struct WinogradTilePoints<3> {
    static constexpr int kIds[] = {0, 1, 2, 3, 5};
};

// Points with these ids, +-a and +-b with ab = 1, in sets of 6 and of 8. Those of the first lose
// less precision.
struct SixPoints {
    static constexpr double a = 0.70710678118654752440, b = 1.41421356237309504880;
    static constexpr double a2 = .5, b2 = 2;
};
struct EightPoints {
    static constexpr double a = .5, b = 2, a2 = .25, b2 = 4;
};

// B^T d: the row of point p holds the coefficients of M(x) / (x - p), M having all points as roots;
// that of infinity those of M.
template <int M, class P, class V>
QUOLL_INLINE void tile_input_1d(const V (&d)[M + 2], V (&t)[M + 2]) {
    const auto c = [](double x) QUOLL_INLINE_LAMBDA { return V::set((float)x); };
    if constexpr (M == 2) {  // x (x^2 - a^2)
        t[0] = nfma(c(P::a2), d[0], d[2]);
        t[1] = fma(c(P::a), d[1], d[2]);
        t[2] = nfma(c(P::a), d[1], d[2]);
        t[3] = nfma(c(P::a2), d[1], d[3]);
    } else if constexpr (M == 3) {  // x (x^2 - a^2) (x - b)
        t[0] = fma(c(P::a), d[0], nfma(c(P::a2), d[1], nfma(c(P::b), d[2], d[3])));
        t[1] = nfma(c(P::b - P::a), d[2], d[3] - d[1]);
        t[2] = nfma(c(P::b + P::a), d[2], d[3] + d[1]);
        t[3] = nfma(c(P::a2), d[1], d[3]);
        t[4] = fma(c(P::a), d[1], nfma(c(P::a2), d[2], nfma(c(P::b), d[3], d[4])));
    } else if constexpr (M == 4) {  // x (x^2 - a^2) (x^2 - b^2)
        const V even_a = nfma(c(P::b2), d[2], d[4]), odd_a = nfma(c(P::b2), d[1], d[3]);
        const V even_b = nfma(c(P::a2), d[2], d[4]), odd_b = nfma(c(P::a2), d[1], d[3]);
        t[0] = nfma(c(P::a2 + P::b2), d[2], d[0] + d[4]);
        t[1] = fma(c(P::a), odd_a, even_a);
        t[2] = nfma(c(P::a), odd_a, even_a);
        t[3] = fma(c(P::b), odd_b, even_b);
        t[4] = nfma(c(P::b), odd_b, even_b);
        t[5] = nfma(c(P::a2 + P::b2), d[3], d[1] + d[5]);
    } else {  // x (x^2 - 1/4) (x^2 - 4) (x^2 - 1)
        const V even_a = fma(c(4.f), d[2], nfma(c(5.f), d[4], d[6]));
        const V odd_a = fma(c(4.f), d[1], nfma(c(5.f), d[3], d[5]));
        const V even_b = fma(c(.25f), d[2], nfma(c(1.25f), d[4], d[6]));
        const V odd_b = fma(c(.25f), d[1], nfma(c(1.25f), d[3], d[5]));
        const V even_c = nfma(c(4.25f), d[4], d[2] + d[6]);
        const V odd_c = nfma(c(4.25f), d[3], d[1] + d[5]);
        t[0] = fma(c(5.25f), d[2] - d[4], d[6] - d[0]);
        t[1] = fma(c(.5f), odd_a, even_a);
        t[2] = nfma(c(.5f), odd_a, even_a);
        t[3] = fma(c(2.f), odd_b, even_b);
        t[4] = nfma(c(2.f), odd_b, even_b);
        t[5] = fma(c(5.25f), d[3] - d[5], d[7] - d[1]);
        t[6] = even_c + odd_c;
        t[7] = even_c - odd_c;
    }
}

// A^T m: row i holds the i-th powers of the points, each times what the weights of M outputs have
// more than those of 4 (of 6 at the points +-1): M4'(p) / M'(p).
template <int M, class P, class V>
QUOLL_INLINE void tile_output_1d(const V (&m)[M + 2], V (&y)[M]) {
    const auto c = [](double x) QUOLL_INLINE_LAMBDA { return V::set((float)x); };
    if constexpr (M == 2) {  // M4' / M' = p^2 - b^2
        constexpr double f = P::a2 - P::b2;
        y[0] = fma(c(f), m[1] + m[2], c(-P::b2) * m[0]);
        y[1] = fma(c(P::a * f), m[1] - m[2], m[3]);
    } else if constexpr (M == 3) {  // p + b
        constexpr double plus = P::b + P::a, minus = P::b - P::a;
        y[0] = fma(c(plus), m[1], fma(c(minus), m[2], fma(c(P::b), m[0], c(2 * P::b) * m[3])));
        y[1] = fma(c(P::a * plus), m[1], nfma(c(P::a * minus), m[2], c(2 * P::b2) * m[3]));
        y[2] = fma(c(P::a2 * plus), m[1],
                   fma(c(P::a2 * minus), m[2], fma(c(2 * P::b * P::b2), m[3], m[4])));
    } else if constexpr (M == 4) {
        const V sum_a = m[1] + m[2], difference_a = m[1] - m[2];
        const V sum_b = m[3] + m[4], difference_b = m[3] - m[4];
        y[0] = m[0] + sum_a + sum_b;
        y[1] = fma(c(P::b), difference_b, c(P::a) * difference_a);
        y[2] = fma(c(P::b2), sum_b, c(P::a2) * sum_a);
        y[3] = fma(c(P::b * P::b2), difference_b, fma(c(P::a * P::a2), difference_a, m[5]));
    } else {
        constexpr double a = -4. / 3, b = 1. / 3;
        const V sum_a = m[1] + m[2], difference_a = m[1] - m[2];
        const V sum_b = m[3] + m[4], difference_b = m[3] - m[4];
        const V sum_c = m[6] + m[7], difference_c = m[6] - m[7];
        y[0] = fma(c(b), sum_b, fma(c(a), sum_a, sum_c - m[0]));
        y[1] = fma(c(2 * b), difference_b, fma(c(a / 2), difference_a, difference_c));
        y[2] = fma(c(4 * b), sum_b, fma(c(a / 4), sum_a, sum_c));
        y[3] = fma(c(8 * b), difference_b, fma(c(a / 8), difference_a, difference_c));
        y[4] = fma(c(16 * b), sum_b, fma(c(a / 16), sum_a, sum_c));
        y[5] = fma(c(32 * b), difference_b, fma(c(a / 32), difference_a, difference_c + m[5]));
    }
}

constexpr size_t kTileLine =
    (kWinogradTilePoints + 1) * s::kLanes;  // of a buffer: lines not a power of two apart

// `lines` input transforms, elements `step` floats apart, lines `line`; value k of a line goes to
// its id * to_step. Of the second pass lines are points too: ids[i], to_line apart.
template <int M, class P, bool second>
void tile_input_pass(const float* in, ptrdiff_t step, ptrdiff_t line, int lines, const int* ids,
                     float* out, size_t to_step, size_t to_line) {
    using V = s::vecf<s::kLanes>;
    for (int i = 0; i < lines; i++, in += line) {
        V d[M + 2], t[M + 2];
        s::unroll<M + 2>([&](auto k)
                             QUOLL_INLINE_LAMBDA { d[k] = V::load(in + (ptrdiff_t)k() * step); });
        tile_input_1d<M, P>(d, t);
        float* const to = out + (second ? ids[i] : i) * to_line;
        s::unroll<M + 2>([&](auto k) QUOLL_INLINE_LAMBDA {
            constexpr size_t id = second ? WinogradTilePoints<M>::kIds[k()] : k();
            t[k].store(to + id * to_step);
        });
    }
}

typedef void (*TileInputPass)(const float*, ptrdiff_t, ptrdiff_t, int, const int*, float*, size_t,
                              size_t);
template <class P, bool second>
TileInputPass tile_input_pass_of(int outputs) {
    switch (outputs) {
        case 2:
            return &tile_input_pass<2, P, second>;
        case 3:
            return &tile_input_pass<3, P, second>;
        case 4:
            return &tile_input_pass<4, P, second>;
        default:
            return &tile_input_pass<6, P, second>;
    }
}

inline const int* tile_ids(int outputs) {
    return outputs == 2   ? WinogradTilePoints<2>::kIds
           : outputs == 3 ? WinogradTilePoints<3>::kIds
           : outputs == 4 ? WinogradTilePoints<4>::kIds
                          : WinogradTilePoints<6>::kIds;
}

template <class P>
void tile_input_of(const float* in, ptrdiff_t row, int w, int h, float* out, size_t step,
                   int points) {
    constexpr size_t L = s::kLanes;
    alignas(16) float columns[kWinogradTilePoints * kTileLine];  // [point along y][x]
    tile_input_pass_of<P, false>(h)(in, row, L, w + 2, nullptr, columns, kTileLine, L);
    tile_input_pass_of<P, true>(w)(columns, L, kTileLine, h + 2, tile_ids(h), out, step,
                                   (size_t)points * step);
}

void tile_input(const float* in, ptrdiff_t row, int w, int h, float* out, size_t step, int points) {
    if (points > 6) return tile_input_of<EightPoints>(in, row, w, h, out, step, points);
    tile_input_of<SixPoints>(in, row, w, h, out, step, points);
}

// The columns of the output: points of column ids[i], to_step floats apart for each id, make lines
// of [y][x].
template <int M, class P>
void tile_output_columns(const float* in, size_t step, size_t line_step, int lines, const int* ids,
                         float* out) {
    constexpr size_t L = s::kLanes;
    using V = s::vecf<L>;
    for (int i = 0; i < lines; i++, out += L) {
        V m[M + 2], y[M];
        const float* const from = in + ids[i] * step;
        s::unroll<M + 2>([&](auto k) QUOLL_INLINE_LAMBDA {
            m[k] = V::load(from + WinogradTilePoints<M>::kIds[k()] * line_step);
        });
        tile_output_1d<M, P>(m, y);
        s::unroll<M>([&](auto k) QUOLL_INLINE_LAMBDA { y[k].store(out + k() * kTileLine); });
    }
}

template <int M, class P>
void tile_output_rows(const float* in, const WinogradTile& t) {
    constexpr size_t L = s::kLanes;
    using V = s::vecf<L>;
    const V bias = V::load(t.bias);
    const float* added = t.added;
    float* out = t.out;
    for (int y = 0; y < t.there_h; y++, in += kTileLine, out += t.row) {
        V m[M + 2], result[M];
        s::unroll<M + 2>([&](auto k) QUOLL_INLINE_LAMBDA { m[k] = V::load(in + k() * L); });
        tile_output_1d<M, P>(m, result);
        s::unroll<M>([&](auto k) QUOLL_INLINE_LAMBDA { result[k] = result[k] + bias; });
        const bool whole = t.there_w == M;
        if (added)
            s::unroll<M>([&](auto k) QUOLL_INLINE_LAMBDA {
                if ((int)k() < t.there_w) result[k] = result[k] + V::load(added + k() * L);
            });
        activate_row(result, t.low, t.high, t.slope);
        s::unroll<M>([&](auto k) QUOLL_INLINE_LAMBDA {
            if (whole || (int)k() < t.there_w) result[k].store(out + k() * L);
        });
        if (added) added += t.row;
    }
}

template <class P>
void tile_output_of(const WinogradTile& t) {
    alignas(16) float columns[kWinogradTilePoints * kTileLine];  // [y][point along x]
    const int lines = t.w + 2;
    const int* const ids = tile_ids(t.w);
    const size_t line = (size_t)t.points * t.step;
    switch (t.h) {
        case 2:
            tile_output_columns<2, P>(t.in, t.step, line, lines, ids, columns);
            break;
        case 3:
            tile_output_columns<3, P>(t.in, t.step, line, lines, ids, columns);
            break;
        case 4:
            tile_output_columns<4, P>(t.in, t.step, line, lines, ids, columns);
            break;
        default:
            tile_output_columns<6, P>(t.in, t.step, line, lines, ids, columns);
    }
    switch (t.w) {
        case 2:
            return tile_output_rows<2, P>(columns, t);
        case 3:
            return tile_output_rows<3, P>(columns, t);
        case 4:
            return tile_output_rows<4, P>(columns, t);
        default:
            return tile_output_rows<6, P>(columns, t);
    }
}

void tile_output(const WinogradTile& t) {
    if (t.points > 6) return tile_output_of<EightPoints>(t);
    tile_output_of<SixPoints>(t);
}

// G w of the set of points, scaled by 1 / M4'(p), at +-1 by 1 / M6'(p).
template <class P>
QUOLL_INLINE void tile_weights_1d(const double* w, size_t w_step, double* t, size_t t_step) {
    const double w0 = w[0], w1 = w[w_step], w2 = w[2 * w_step];
    const auto pair = [&](int id, double p, double scale) QUOLL_INLINE_LAMBDA {
        const double even = w0 + p * p * w2, odd = p * w1;
        t[id * t_step] = (even + odd) / scale;
        t[(id + 1) * t_step] = (even - odd) / scale;
    };
    t[0] = w0;
    pair(1, P::a, 2 * P::a2 * (P::a2 - P::b2));
    pair(3, P::b, 2 * P::b2 * (P::b2 - P::a2));
    t[5 * t_step] = w2;
    if constexpr (std::is_same<P, EightPoints>::value) pair(6, 1., -4.5);
}

template <class P>
void tile_weights_of(const float* windows, size_t count, int points, float* out, size_t step) {
    for (size_t i = 0; i < count; i++) {
        double w[9], rows[3 * kWinogradTilePoints], u[kWinogradTilePoints] = {};
        for (size_t j = 0; j < 9; j++) w[j] = windows[i * 9 + j];
        for (int x = 0; x < 3; x++) tile_weights_1d<P>(w + x, 3, rows + x, 3);
        for (int y = 0; y < points; y++) {
            tile_weights_1d<P>(rows + 3 * y, 1, u, 1);
            for (int x = 0; x < points; x++) out[(size_t)(y * points + x) * step + i] = (float)u[x];
        }
    }
}

void tile_weights(const float* windows, size_t count, int points, float* out, size_t step) {
    if (points > 6) return tile_weights_of<EightPoints>(windows, count, points, out, step);
    tile_weights_of<SixPoints>(windows, count, points, out, step);
}

}  // namespace
}  // namespace quoll
