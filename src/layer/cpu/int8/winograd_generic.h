// The transforms of Winograd's algorithm in integers (Int8WinogradInput, Int8WinogradOutput).
#pragma once

#include "layer/cpu/int8/generic.h"

namespace quoll {
namespace {

// B^T of six values (int8.h).
template <class V>
QUOLL_INLINE void winograd_window(const V* in, V* out) {
    const V three = V::set(3);
    const V u = in[4] - in[2], v = in[3] - in[1], u2 = u + u, v2 = v + v;
    out[0] = (in[0] - in[2] + u).template shift_left<1>() - three * v;
    out[1] = u2 + v2 - three * (in[2] + in[3]);
    out[2] = u2 - v2 - three * (in[3] - in[2]);
    out[3] = u2 + v;
    out[4] = u - v2;
    out[5] = (in[5] - in[3] - v).template shift_left<1>() - three * u;
}

// The same for three outputs, without point 3; of five values.
template <class V>
QUOLL_INLINE void winograd_short_window(const V* in, V* out) {
    const V e = in[1] - in[3], f = in[2] + in[3], three = V::set(3);
    out[0] = (in[0] - in[2] + e + e).template shift_left<1>();
    out[1] = V::set(0) - e - three * f;
    out[2] = three * (in[1] + in[2] - in[3] - in[3]);
    out[4] = e + e.template shift_left<2>();
    out[5] = (in[4] - in[2]).template shift_left<1>() - e;
}

template <int outputs, class V>
QUOLL_INLINE void winograd_window_of(const V* in, V* out) {
    if constexpr (outputs == 4)
        winograd_window(in, out);
    else
        winograd_short_window(in, out);
}

// Tiles with three outputs along an axis, at the edge of a map, go through memory between the axes,
// so that there is one function for each axis and number of outputs: columns[x] = B^T d.
template <size_t N, int height>
[[gnu::noinline]] void winograd_edge_columns(const Int8WinogradInput& t, const int16_t* in,
                                             s::vec<int16_t, N> (*columns)[6]) {
    for (int x = 0; x < t.width + 2; x++, in += t.in_pixel) {
        s::vec<int16_t, N> d[6];
#pragma GCC unroll 6
        for (int y = 0; y < height + 2; y++) d[y] = s::vec<int16_t, N>::load(in + y * t.in_row);
        winograd_window_of<height>(d, columns[x]);
    }
}

template <size_t N, int width>
[[gnu::noinline]] void winograd_edge_rows(const Int8WinogradInput& t,
                                          const s::vec<int16_t, N> (*columns)[6], int16_t* out) {
    for (int y = 0; y < 6; y++) {
        if (y == 3 && t.height == 3) continue;
        s::vec<int16_t, N> d[6], points[6];
#pragma GCC unroll 6
        for (int x = 0; x < width + 2; x++) d[x] = columns[x][y];
        winograd_window_of<width>(d, points);
#pragma GCC unroll 6
        for (int x = 0; x < 6; x++)
            if (x != 3 || width == 4) points[x].store(out + (6 * y + x) * t.out_point);
    }
}

template <size_t N>
QUOLL_INLINE void winograd_edge_points(const Int8WinogradInput& t, const int16_t* in,
                                       int16_t* out) {
    s::vec<int16_t, N> columns[6][6];
    (t.height == 4 ? winograd_edge_columns<N, 4> : winograd_edge_columns<N, 3>)(t, in, columns);
    (t.width == 4 ? winograd_edge_rows<N, 4> : winograd_edge_rows<N, 3>)(t, columns, out);
}

template <size_t N>
QUOLL_INLINE void winograd_points(const Int8WinogradInput& t, const int16_t* in, int16_t* out) {
    using V = s::vec<int16_t, N>;
    if (t.height + t.width < 8) return winograd_edge_points<N>(t, in, out);
    V columns[6][6];  // [x][y]: B^T d
    s::unroll<6>([&](auto x) QUOLL_INLINE_LAMBDA {
        V d[6];
#pragma GCC unroll 6
        for (int y = 0; y < 6; y++) d[y] = V::load(in + x() * t.in_pixel + y * t.in_row);
        winograd_window(d, columns[x]);
    });
    s::unroll<6>([&](auto y) QUOLL_INLINE_LAMBDA {
        V d[6], points[6];
#pragma GCC unroll 6
        for (int x = 0; x < 6; x++) d[x] = columns[x][y];
        winograd_window(d, points);
#pragma GCC unroll 6
        for (int x = 0; x < 6; x++) points[x].store(out + (6 * y() + x) * t.out_point);
    });
}

// Winograd's algorithm asks only vectors of two values a k-group.
constexpr bool kHasWinograd = kWordK == 2 && s::kLanes >= 4;

void winograd_input(const Int8WinogradInput& t) {
    if constexpr (kHasWinograd) {
        // Blocks have 16 channels and more; what is left is made together with some before it.
        constexpr int N = (int)s::native_lanes<int16_t>(), kLeast = std::min(N, 16);
        for (int i = 0; i < t.tiles; i++) {
            const int16_t* in = t.in + t.width * i * t.in_pixel;
            int16_t* out = t.out + i * t.out_tile;
            int c = 0;
            for (; c + N <= t.channels; c += N) winograd_points<N>(t, in + c, out + c);
            for (; c < t.channels && t.channels >= kLeast; c += kLeast) {
                c = std::min(c, t.channels - kLeast);
                winograd_points<kLeast>(t, in + c, out + c);
            }
            for (; c < t.channels; c++) winograd_points<1>(t, in + c, out + c);
        }
    }
}

// A^T of six sums.
template <class I>
QUOLL_INLINE void winograd_outputs(const I* in, I* out) {
    const I s = in[1] + in[2], d = in[1] - in[2], a = in[3] + in[3], b = in[4] + in[4];
    out[0] = in[0] + s + in[3] + b.template shift_left<2>();
    out[1] = d + (in[3] - b).template shift_left<1>();
    out[2] = s + (a + in[4]).template shift_left<1>();
    out[3] = d + a.template shift_left<2>() + (in[5] - in[4]);
}

template <class I>
QUOLL_INLINE void winograd_short_outputs(const I* in, I* out) {
    out[0] = in[0] + in[1] + in[2] + in[4].template shift_left<2>();
    out[1] = in[1] - in[2] - in[4] - in[4];
    out[2] = in[1] + in[2] + in[4] + in[5];
}

template <class I>
QUOLL_INLINE void winograd_store(const I& sum, int32_t* out) {
    (sum * I::set((int32_t)kInverseOf225)).template shift_right<2>().store(out);
}

template <int outputs, class I>
QUOLL_INLINE void winograd_outputs_of(const I* in, I* out) {
    if constexpr (outputs == 4)
        winograd_outputs(in, out);
    else
        winograd_short_outputs(in, out);
}

// As winograd_edge_points: columns[x] = A^T m.
template <int height>
[[gnu::noinline]] void winograd_edge_sums(const Int8WinogradOutput& t, const int32_t* sums,
                                          s::veci<s::kLanes> (*columns)[4]) {
    for (int x = 0; x < 6; x++, sums += t.point) {
        if (x == 3 && t.width == 3) continue;
        s::veci<s::kLanes> m[6];
#pragma GCC unroll 6
        for (size_t y = 0; y < 6; y++)
            if (y != 3 || height == 4) m[y] = s::veci<s::kLanes>::load(sums + 6 * y * t.point);
        winograd_outputs_of<height>(m, columns[x]);
    }
}

template <int width>
[[gnu::noinline]] void winograd_edge_outputs(const Int8WinogradOutput& t,
                                             const s::veci<s::kLanes> (*columns)[4], int32_t* out) {
    for (int y = 0; y < t.height; y++, out += width * t.n) {
        s::veci<s::kLanes> m[6], r[4];
#pragma GCC unroll 6
        for (int x = 0; x < 6; x++)
            if (x != 3 || width == 4) m[x] = columns[x][y];
        winograd_outputs_of<width>(m, r);
#pragma GCC unroll 4
        for (int x = 0; x < width; x++) winograd_store(r[x], out + x * t.columns);
    }
}

QUOLL_INLINE void winograd_edge_tile(const Int8WinogradOutput& t, const int32_t* sums,
                                     int32_t* out) {
    s::veci<s::kLanes> columns[6][4];
    (t.height == 4 ? winograd_edge_sums<4> : winograd_edge_sums<3>)(t, sums, columns);
    (t.width == 4 ? winograd_edge_outputs<4> : winograd_edge_outputs<3>)(t, columns, out);
}

QUOLL_INLINE void winograd_tile(const Int8WinogradOutput& t, const int32_t* sums, int32_t* out) {
    using I = s::veci<s::kLanes>;
    if (t.height + t.width < 8) return winograd_edge_tile(t, sums, out);
    I columns[6][4];  // [x][y]: A^T m
    s::unroll<6>([&](auto x) QUOLL_INLINE_LAMBDA {
        I m[6];
#pragma GCC unroll 6
        for (size_t y = 0; y < 6; y++) m[y] = I::load(sums + (6 * y + x()) * t.point);
        winograd_outputs(m, columns[x]);
    });
    s::unroll<4>([&](auto y) QUOLL_INLINE_LAMBDA {
        I m[6], r[4];
#pragma GCC unroll 6
        for (int x = 0; x < 6; x++) m[x] = columns[x][y];
        winograd_outputs(m, r);
#pragma GCC unroll 6
        for (size_t x = 0; x < 4; x++) winograd_store(r[x], out + y() * 4 * t.n + x * t.columns);
    });
}

void winograd_output(const Int8WinogradOutput& t) {
    if constexpr (kHasWinograd) {
        int32_t* out = t.out;
        for (size_t first = 0; first < t.n; first += t.columns, out += t.width * t.columns)
            for (size_t i = 0; i < t.columns; i += s::kLanes)
                winograd_tile(t, t.sums + first + i, out + i);
    }
}

}  // namespace
}  // namespace quoll
