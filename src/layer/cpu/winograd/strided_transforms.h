// The transforms of tiles of 4 or 3 outputs along each axis of windows at steps of 2 (winograd.h):
// of even inputs first all columns, then all rows, through a buffer; odd inputs are copied.
#pragma once

#include <stdint.h>

#include "layer/cpu/winograd/generic.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

// Points 0, a, -a, b and infinity; a tile of 3 outputs has no b.
struct StridedPoints {
    static constexpr double a = 0.70710678118654752440, b = 2;
    static constexpr double a2 = .5, b2 = 4;
    // The id of point k of a tile of M outputs.
    template <int M>
    static constexpr int id(int k) {
        return M == 3 && k == 3 ? 4 : k;
    }
};
constexpr size_t kStridedLine = kWinogradStridedIn * s::kLanes;  // of a buffer

template <class T>
QUOLL_INLINE T* bytes_on(T* from, ptrdiff_t bytes) {
    return (T*)((uintptr_t)from + (size_t)bytes);
}

// B^T d: the row of point p holds the coefficients of M(x) / (x - p), M having all points as roots;
// that of infinity those of M.
template <int M, class V>
QUOLL_INLINE void strided_input_1d(const V (&d)[M + 1], V (&t)[M + 1]) {
    using P = StridedPoints;
    const auto c = [](double x) QUOLL_INLINE_LAMBDA { return V::set((float)x); };
    if constexpr (M == 3) {  // x (x^2 - a^2)
        t[0] = nfma(c(P::a2), d[0], d[2]);
        t[1] = fma(c(P::a), d[1], d[2]);
        t[2] = nfma(c(P::a), d[1], d[2]);
        t[3] = nfma(c(P::a2), d[1], d[3]);
    } else {  // x (x^2 - a^2) (x - b)
        const V low = nfma(c(P::b), d[0], d[1]), middle = nfma(c(P::b), d[1], d[2]);
        const V high = nfma(c(P::b), d[2], d[3]);
        t[0] = nfma(c(P::a2), low, high);
        t[1] = fma(c(P::a), middle, high);
        t[2] = nfma(c(P::a), middle, high);
        t[3] = nfma(c(P::a2), d[1], d[3]);
        t[4] = nfma(c(P::a2), middle, nfma(c(P::b), d[3], d[4]));
    }
}

// A^T m: row i holds the i-th powers of the points, those of 3 outputs times p - b, which the
// weights have less than theirs.
template <int M, class V>
QUOLL_INLINE void strided_output_1d(const V (&m)[M + 1], V (&y)[M]) {
    using P = StridedPoints;
    const auto c = [](double x) QUOLL_INLINE_LAMBDA { return V::set((float)x); };
    if constexpr (M == 3) {
        const V plus = c(P::a - P::b) * m[1], minus = c(-P::a - P::b) * m[2];
        const V sum = plus + minus;
        y[0] = nfma(c(P::b), m[0], sum);
        y[1] = c(P::a) * (plus - minus);
        y[2] = fma(c(P::a2), sum, m[3]);
    } else {
        const V sum = m[1] + m[2], difference = m[1] - m[2];
        y[0] = m[0] + sum + m[3];
        y[1] = fma(c(P::b), m[3], c(P::a) * difference);
        y[2] = fma(c(P::b2), m[3], c(P::a2) * sum);
        y[3] = fma(c(P::b * P::b2), m[3], fma(c(P::a * P::a2), difference, m[4]));
    }
}

// The even inputs of columns, `row` floats apart: to lines of points.
template <int M>
void strided_input_columns(const float* in, ptrdiff_t row, int columns, float* lines) {
    using V = s::vecf<s::kLanes>;
    for (int x = 0; x < columns; x++, in += s::kLanes, lines += s::kLanes) {
        V d[M + 1], t[M + 1];
        s::unroll<M + 1>([&](auto k) QUOLL_INLINE_LAMBDA { d[k] = V::load(in + 2 * k() * row); });
        strided_input_1d<M>(d, t);
        s::unroll<M + 1>([&](auto k)
                             QUOLL_INLINE_LAMBDA { t[k].store(lines + k() * kStridedLine); });
    }
}

// f(0) to f(count - 1), of M at most.
template <int M, class F>
QUOLL_INLINE void unroll_first(int count, F f) {
    if (count == M) return s::unroll<M>(f);
    s::unroll<M>([&](auto k) QUOLL_INLINE_LAMBDA {
        if ((int)k() < count) f(k);
    });
}

// A row of inputs or of a buffer, of which so many odd ones are there: to the places sets[id] of
// out, odd ones to sets[id] of odd_out and the rows that follow.
template <int M>
QUOLL_INLINE void strided_input_row(const float* in, int odd, const ptrdiff_t* sets, float* out,
                                    float* odd_out, size_t step) {
    constexpr size_t L = s::kLanes;
    using V = s::vecf<L>;
    V d[M + 1], t[M + 1];
    s::unroll<M + 1>([&](auto k) QUOLL_INLINE_LAMBDA { d[k] = V::load(in + 2 * k() * L); });
    strided_input_1d<M>(d, t);
    s::unroll<M + 1>([&](auto k) QUOLL_INLINE_LAMBDA {
        t[k].store(bytes_on(out, sets[StridedPoints::id<M>(k())]));
    });
    odd_out = bytes_on(odd_out, sets[kWinogradOdd]);
    unroll_first<M>(odd, [&](auto k) QUOLL_INLINE_LAMBDA {
        V::load(in + (2 * k() + 1) * L).store(bytes_on(odd_out, k() * step));
    });
}

// The rows of a buffer, then of the odd inputs.
template <int M>
void strided_input_rows(const float* lines, const float* in, ptrdiff_t row,
                        const WinogradStridedTile& t, float* out) {
    for (int y = 0; y <= t.h; y++, lines += kStridedLine) {
        const int id = y == t.h ? kWinogradOdd - 1 : y;
        strided_input_row<M>(lines, t.there_w, t.sets + id * kWinogradIn, out, out, t.step);
    }
    float* odd = out;
    for (int y = 0; y < t.there_h; y++, in += 2 * row) {
        strided_input_row<M>(in, t.there_w, t.sets + kWinogradOdd * kWinogradIn, out, odd, t.step);
        out = bytes_on(out, t.step);
        odd = bytes_on(odd, t.there_w * t.step);
    }
}

void strided_input(const float* in, ptrdiff_t row, const WinogradStridedTile& t, float* out) {
    alignas(64) float lines[(kWinogradOut + 1) * kStridedLine];
    const auto columns = t.h == 4 ? &strided_input_columns<4> : &strided_input_columns<3>;
    const auto rows = t.w == 4 ? &strided_input_rows<4> : &strided_input_rows<3>;
    columns(in, row, 2 * t.w + 1, lines);
    rows(lines, in + row, row, t, out);
}

// The inverse of strided_input_row, of sums: M outputs.
template <int M, class V>
QUOLL_INLINE void strided_output_row(const float* in, const float* odd_in, int odd,
                                     const ptrdiff_t* sets, size_t step, V (&y)[M]) {
    V m[M + 1];
    s::unroll<M + 1>([&](auto k) QUOLL_INLINE_LAMBDA {
        m[k] = V::load(bytes_on(in, sets[StridedPoints::id<M>(k())]));
    });
    strided_output_1d<M>(m, y);
    odd_in = bytes_on(odd_in, sets[kWinogradOdd]);
    unroll_first<M>(odd, [&](auto k) QUOLL_INLINE_LAMBDA {
        y[k] = y[k] + V::load(bytes_on(odd_in, k() * step));
    });
}

// The rows of points along y, to lines.
template <int M>
void strided_output_lines(const float* sums, const WinogradStridedTile& t, float* lines) {
    constexpr size_t L = s::kLanes;
    for (int y = 0; y <= t.h; y++, lines += kStridedLine) {
        const int id = y == t.h ? kWinogradOdd - 1 : y;
        s::vecf<L> values[M];
        strided_output_row<M>(sums, sums, t.there_w, t.sets + id * kWinogradIn, t.step, values);
        s::unroll<M>([&](auto k) QUOLL_INLINE_LAMBDA { values[k].store(lines + k() * L); });
    }
}

// Columns of points become columns of outputs, where they are.
template <int M>
void strided_output_columns(float* lines, int columns) {
    using V = s::vecf<s::kLanes>;
    for (int x = 0; x < columns; x++, lines += s::kLanes) {
        V m[M + 1], y[M];
        s::unroll<M + 1>([&](auto k)
                             QUOLL_INLINE_LAMBDA { m[k] = V::load(lines + k() * kStridedLine); });
        strided_output_1d<M>(m, y);
        s::unroll<M>([&](auto k) QUOLL_INLINE_LAMBDA { y[k].store(lines + k() * kStridedLine); });
    }
}

// Rows of outputs from lines and from the sums of odd rows.
template <int M>
void strided_output_rows(const float* lines, const float* sums, const WinogradStridedTile& t,
                         const WinogradStridedOut& out) {
    constexpr size_t L = s::kLanes;
    using V = s::vecf<L>;
    const V bias = V::load(out.bias);
    const float *odd = sums, *added = out.added;
    float* to = out.to;
    for (int y = 0; y < t.there_h; y++, lines += kStridedLine, to += out.row) {
        V values[M];
        strided_output_row<M>(sums, odd, t.there_w, t.sets + kWinogradOdd * kWinogradIn, t.step,
                              values);
        sums = bytes_on(sums, t.step);
        odd = bytes_on(odd, t.there_w * t.step);
        s::unroll<M>([&](auto k) QUOLL_INLINE_LAMBDA {
            values[k] = V::load(lines + k() * L) + values[k] + bias;
        });
        if (added) {
            unroll_first<M>(t.there_w, [&](auto k) QUOLL_INLINE_LAMBDA {
                values[k] = values[k] + V::load(added + k() * L);
            });
            added += out.row;
        }
        activate_row(values, out.low, out.high, out.slope);
        unroll_first<M>(t.there_w,
                        [&](auto k) QUOLL_INLINE_LAMBDA { values[k].store(to + k() * L); });
    }
}

void strided_output(const float* sums, const WinogradStridedTile& t,
                    const WinogradStridedOut& out) {
    alignas(64) float lines[(kWinogradOut + 1) * kStridedLine];
    const auto to_lines = t.w == 4 ? &strided_output_lines<4> : &strided_output_lines<3>;
    const auto columns = t.h == 4 ? &strided_output_columns<4> : &strided_output_columns<3>;
    const auto rows = t.w == 4 ? &strided_output_rows<4> : &strided_output_rows<3>;
    to_lines(sums, t, lines);
    columns(lines, t.there_w);
    rows(lines, sums, t, out);
}

// G w: of the outer taps the points, scaled by 1 / M'(p), of the middle one itself.
QUOLL_INLINE void strided_weights_1d(const double* w, size_t w_step, double* t) {
    using P = StridedPoints;
    const double first = w[0], last = w[2 * w_step];
    t[0] = first / (P::a2 * P::b);
    t[1] = (first + P::a * last) / (2 * P::a2 * (P::a - P::b));
    t[2] = (first - P::a * last) / (2 * P::a2 * (-P::a - P::b));
    t[3] = (first + P::b * last) / (P::b * (P::b2 - P::a2));
    t[4] = last;
    t[kWinogradOdd] = w[w_step];
}

void strided_weights(const float* windows, size_t count, float* out, size_t step) {
    for (size_t i = 0; i < count; i++) {
        double w[9], columns[3][kWinogradIn], u[kWinogradIn];
        for (size_t j = 0; j < 9; j++) w[j] = windows[i * 9 + j];
        for (int x = 0; x < 3; x++) strided_weights_1d(w + x, 3, columns[x]);
        for (int y = 0; y < kWinogradIn; y++) {
            strided_weights_1d(&columns[0][y], kWinogradIn, u);
            for (int x = 0; x < kWinogradIn; x++)
                out[(size_t)(y * kWinogradIn + x) * step + i] = (float)u[x];
        }
    }
}

}  // namespace
}  // namespace quoll
