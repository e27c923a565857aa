// Depthwise convolution loops on vectors of any width.
#pragma once

#include <type_traits>

#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/dwconv/dwconv.h"
#include "simd/convert.h"
#include "simd/shuffle.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

template <class V>
QUOLL_INLINE V clamp(V x, float low, float high) {
    return min(V::set(high), max(V::set(low), x));
}

// The bias, and what kernel rows outside the input add to every output of the row.
template <class V>
QUOLL_INLINE V row_bias(const DwconvRow& r) {
    V sum = V::load(r.bias);
    if (r.pad_value == 0.f) return sum;
    for (int ky = 0; ky < r.kernel_h; ky++) {
        if (ky >= r.ky_first && ky < r.ky_last) continue;
        for (int kx = 0; kx < r.kernel_w; kx++) {
            const size_t tap = (size_t)ky * r.kernel_w + kx;
            sum = fma(V::load(r.weight + tap * V::kSize), V::set(r.pad_value), sum);
        }
    }
    return sum;
}

template <size_t N>
QUOLL_INLINE float* dwconv_out(const DwconvRow& r, int x) {
    return r.out + (size_t)x * r.out_step * N;
}

// Computes outputs x to x + T - 1. Each input element is loaded once per kernel row. The first L
// and last R input columns of the tile are outside the input and count as zero.
template <size_t N, int K, int S, int T, int L = 0, int R = 0>
QUOLL_INLINE void dwconv_tile(const DwconvRow& r, s::vecf<N> bias, int x) {
    using V = s::vecf<N>;
    V sum[T];
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) sum[t] = bias;
    const float* in = r.in + ((ptrdiff_t)x * S - r.pad_left) * (ptrdiff_t)N;
    const float* weight = r.weight + (size_t)r.ky_first * K * N;
    for (int ky = r.ky_first; ky < r.ky_last; ky++, in += r.row_step, weight += K * N) {
        V w[K];
#pragma GCC unroll 8
        for (int k = 0; k < K; k++) w[k] = V::load(weight + k * N);
#pragma GCC unroll 32
        for (int i = L; i < (T - 1) * S + K - R; i++) {
            const V v = V::load(in + i * N);
#pragma GCC unroll 8
            for (int k = 0; k < K; k++) {
                const int t = (i - k) / S;
                if (i >= k && (i - k) % S == 0 && t < T) sum[t] = fma(v, w[k], sum[t]);
            }
        }
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) clamp(sum[t], r.low, r.high).store(dwconv_out<N>(r, x + t));
}

// The same for any kernel, stride and dilation.
template <size_t N, int T>
QUOLL_INLINE void dwconv_tile_any(const DwconvRow& r, s::vecf<N> bias, int x) {
    using V = s::vecf<N>;
    V sum[T];
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) sum[t] = bias;
    const size_t stride = (size_t)r.stride_w * N, dilation = (size_t)r.dilation_w * N;
    const float* row = r.in + ((ptrdiff_t)x * r.stride_w - r.pad_left) * (ptrdiff_t)N;
    const float* weight = r.weight + (size_t)r.ky_first * r.kernel_w * N;
    for (int ky = r.ky_first; ky < r.ky_last; ky++, row += r.row_step) {
        const float* in = row;
        for (int kx = 0; kx < r.kernel_w; kx++, in += dilation, weight += N) {
            const V w = V::load(weight);
#pragma GCC unroll 16
            for (int t = 0; t < T; t++) sum[t] = fma(V::load(in + t * stride), w, sum[t]);
        }
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) clamp(sum[t], r.low, r.high).store(dwconv_out<N>(r, x + t));
}

// One output whose window reaches over the left or right edge.
template <size_t N>
QUOLL_INLINE void dwconv_border(const DwconvRow& r, s::vecf<N> bias, int x) {
    using V = s::vecf<N>;
    const ptrdiff_t left = (ptrdiff_t)x * r.stride_w - r.pad_left, dilation = r.dilation_w;
    int first = 0, last = r.kernel_w;  // kernel columns within the input
    while (first < last && left + first * dilation < 0) first++;
    while (first < last && left + (last - 1) * dilation >= r.in_w) last--;

    V sum = bias;
    const float* weight = r.weight + (size_t)r.ky_first * r.kernel_w * N;
    const float* row = r.in;
    for (int ky = r.ky_first; ky < r.ky_last; ky++) {
        for (int kx = first; kx < last; kx++) {
            const V v = V::load(row + (left + kx * dilation) * (ptrdiff_t)N);
            sum = fma(v, V::load(weight + (size_t)kx * N), sum);
        }
        if (r.pad_value != 0.f) {
            const V pad = V::set(r.pad_value);
            for (int kx = 0; kx < r.kernel_w; kx++)
                if (kx < first || kx >= last) sum = fma(pad, V::load(weight + (size_t)kx * N), sum);
        }
        row += r.row_step, weight += (size_t)r.kernel_w * N;
    }
    clamp(sum, r.low, r.high).store(dwconv_out<N>(r, x));
}

// Outputs x to x + T - 1, which need no padding.
template <size_t N, int K, int S, int T>
QUOLL_INLINE void dwconv_step(const DwconvRow& r, s::vecf<N> bias, int x) {
    if constexpr (K == 0) {
        dwconv_tile_any<N, T>(r, bias, x);
    } else {
        dwconv_tile<N, K, S, T>(r, bias, x);
    }
}

// Computes outputs x to `end`, which need no padding; some of the row are computed twice rather
// than one at a time.
template <size_t N, int K, int S>
QUOLL_INLINE void dwconv_inner(const DwconvRow& r, s::vecf<N> bias, int x, int end) {
    for (; !kFewKernels && x + 8 <= end; x += 8) dwconv_step<N, K, S, 8>(r, bias, x);
    if (r.x_last - r.x_first < 4) {
        for (; x < end; x++) dwconv_step<N, K, S, 1>(r, bias, x);
    }
    while (x < end) {
        if (x > r.x_last - 4) x = r.x_last - 4;
        dwconv_step<N, K, S, 4>(r, bias, x);
        x += 4;
    }
}

// Adds taps kx to kx + C - 1 of a kernel row of stride and dilation 1 to outputs of which the first
// has tap kx at column `column`. Each input element is loaded once, by load(). Edges: columns
// outside the input count as zero. Weights are `step` floats apart.
template <size_t N, int T, int C, bool edges, class Load>
QUOLL_INLINE void dwconv_add_taps(const float* row, const float* weight, size_t step,
                                  ptrdiff_t column, int in_w, Load load, s::vecf<N> (&sum)[T]) {
    using V = s::vecf<N>;
    V w[C];
#pragma GCC unroll 4
    for (int k = 0; k < C; k++) w[k] = V::load(weight + k * step);
    const float* const in = row + column * (ptrdiff_t)N;
#pragma GCC unroll 32
    for (int i = 0; i < T + C - 1; i++) {
        if (edges && (column + i < 0 || column + i >= in_w)) continue;
        const V v = load(in + i * N);
#pragma GCC unroll 4
        for (int k = 0; k < C; k++)
            if (i >= k && i - k < T) sum[i - k] = fma(v, w[k], sum[i - k]);
    }
}

// Outputs x to x + T - 1 of a window of any width, of stride and dilation 1.
template <size_t N, int T, bool edges>
QUOLL_INLINE void dwconv_wide_tile(const DwconvRow& r, s::vecf<N> bias, int x) {
    s::vecf<N> sum[T];
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) sum[t] = bias;
    const ptrdiff_t left = (ptrdiff_t)x - r.pad_left;
    const float* row = r.in;
    const float* weight = r.weight + (size_t)r.ky_first * r.kernel_w * N;
    const auto load = [](const float* p) QUOLL_INLINE_LAMBDA { return s::vecf<N>::load(p); };
    for (int ky = r.ky_first; ky < r.ky_last; ky++, row += r.row_step) {
        int kx = 0;
        for (; kx + 4 <= r.kernel_w; kx += 4, weight += 4 * N)
            if (!edges || (left + kx < r.in_w && left + kx + T + 3 > 0))
                dwconv_add_taps<N, T, 4, edges>(row, weight, N, left + kx, r.in_w, load, sum);
        const int rest = r.kernel_w - kx;
        if (rest == 3)
            dwconv_add_taps<N, T, 3, edges>(row, weight, N, left + kx, r.in_w, load, sum);
        if (rest == 2)
            dwconv_add_taps<N, T, 2, edges>(row, weight, N, left + kx, r.in_w, load, sum);
        if (rest == 1)
            dwconv_add_taps<N, T, 1, edges>(row, weight, N, left + kx, r.in_w, load, sum);
        weight += (size_t)rest * N;
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) clamp(sum[t], r.low, r.high).store(dwconv_out<N>(r, x + t));
}

// Calls tile(x, count) for outputs x to x + count - 1, where count is 14 (if there are registers
// for it), 8 or 4: as many sums as registers can hold, since each waits for itself, in numbers that
// divide usual row lengths. There have to be at least four outputs; the last tile computes some
// again rather than being shorter.
template <class Tile>
QUOLL_INLINE void dwconv_tiles(const DwconvRow& r, Tile tile) {
    int x = 0;
    const auto step = [&](auto count) QUOLL_INLINE_LAMBDA {
        const bool inner = x >= r.x_first && x + (int)count() <= r.x_last;
        if (inner)
            tile(count, std::false_type(), x);
        else
            tile(count, std::true_type(), x);
        x += (int)count();
    };
    if constexpr (QUOLL_ISA_REGISTERS >= 32)
        while (x + 14 <= r.out_w) step(std::integral_constant<int, 14>());
    while (x + 8 <= r.out_w) step(std::integral_constant<int, 8>());
    while (x < r.out_w) {
        if (x + 4 > r.out_w) x = r.out_w - 4;
        step(std::integral_constant<int, 4>());
    }
}

template <size_t N>
void dwconv_wide_row(const DwconvRow& r, s::vecf<N> bias) {
    dwconv_tiles(r, [&](auto count, auto edges, int x)
                        QUOLL_INLINE_LAMBDA { dwconv_wide_tile<N, count(), edges()>(r, bias, x); });
}

// Sides where the window reaches K / 2 columns over the edge, as with SAME padding, have tiles of
// their own; with any other border, outputs are computed one by one.
template <size_t N, int K, int S>
void dwconv_row(const DwconvRow& row) {
    const DwconvRow r = row;  // what no store of results can change
    const s::vecf<N> bias = row_bias<s::vecf<N>>(r);
    bool left = false, right = false;
    if constexpr (K == 0) {
        if (!kFewKernels && r.stride_w == 1 && r.dilation_w == 1 && r.pad_value == 0.f &&
            r.out_w >= 4)
            return dwconv_wide_row<N>(r, bias);
    } else {
        const ptrdiff_t over = (ptrdiff_t)(r.out_w - 1) * S + K - r.pad_left - r.in_w;
        const bool zeros = r.pad_value == 0.f && r.x_first < r.x_last;
        left = zeros && r.pad_left == K / 2 && r.x_last >= 4;
        right = zeros && over == K / 2 && r.out_w - 4 >= r.x_first;
    }
    int x = 0;
    if (left) {
        if constexpr (K > 0) dwconv_tile<N, K, S, 4, K / 2, 0>(r, bias, 0);
        x = 4;
    } else {
        for (; x < r.x_first; x++) dwconv_border<N>(r, bias, x);
    }
    const int inner_end = right ? r.out_w - 4 : r.x_last;
    dwconv_inner<N, K, S>(r, bias, x, inner_end);
    if (right) {
        if constexpr (K > 0) dwconv_tile<N, K, S, 4, 0, K / 2>(r, bias, r.out_w - 4);
    } else {
        for (x = x > r.x_last ? x : r.x_last; x < r.out_w; x++) dwconv_border<N>(r, bias, x);
    }
}

// ---------------------------------------------------------------- narrow groups

// [log2 of the channels of a group, less 2][channel][lane]: the lane that has this channel of the
// lane's group.
struct GroupLanes {
    constexpr GroupLanes() {
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 8; j++)
                for (int lane = 0; lane < 16; lane++)
                    index[i][j][lane] = lane / (4 << i) * (4 << i) + j % (4 << i);
    }
    int32_t index[2][8][16] = {};
};
alignas(64) constexpr GroupLanes kGroupLanes;

// Outputs x to x + T - 1 of several groups, whose channels share a register: every channel of a
// group is spread over it, and has weights of its own for each output.
template <size_t N, int T, bool edges>
QUOLL_INLINE void dwconv_group_tile(const DwconvRow& r, s::vecf<N> bias, int x) {
    using V = s::vecf<N>;
    V sum[T];
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) sum[t] = bias;
    const size_t tap = (size_t)r.group * N;
    const ptrdiff_t left = (ptrdiff_t)x * r.stride_w - r.pad_left;
    const float* row = r.in;
    const float* weight = r.weight + (size_t)r.ky_first * r.kernel_w * tap;
    for (int ky = r.ky_first; ky < r.ky_last; ky++, row += r.row_step) {
        for (int kx = 0; kx < r.kernel_w;) {
            const bool three = r.stride_w == 1 && kx + 3 <= r.kernel_w;
            const ptrdiff_t column = left + kx;
            for (int j = 0; j < r.group; j++, weight += N) {
                const auto lanes = s::lane_table<N>(kGroupLanes.index[r.group == 8][j]);
                const auto load = [&](const float* p)
                                      QUOLL_INLINE_LAMBDA { return pick_lanes(V::load(p), lanes); };
                if (three) {
                    dwconv_add_taps<N, T, 3, edges>(row, weight, tap, column, r.in_w, load, sum);
                    continue;
                }
                const V w = V::load(weight);
#pragma GCC unroll 16
                for (int t = 0; t < T; t++) {
                    const ptrdiff_t at = column + (ptrdiff_t)t * r.stride_w;
                    if (edges && (at < 0 || at >= r.in_w)) continue;
                    sum[t] = fma(load(row + at * (ptrdiff_t)N), w, sum[t]);
                }
            }
            kx += three ? 3 : 1;
            if (three) weight += 2 * tap;
        }
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) clamp(sum[t], r.low, r.high).store(dwconv_out<N>(r, x + t));
}

template <size_t N>
void dwconv_group_row(const DwconvRow& row) {
    const DwconvRow r = row;
    const s::vecf<N> bias = s::vecf<N>::load(r.bias);
    if (r.out_w < 4) {
        for (int x = 0; x < r.out_w; x++) dwconv_group_tile<N, 1, true>(r, bias, x);
        return;
    }
    dwconv_tiles(r, [&](auto count, auto edges, int x) QUOLL_INLINE_LAMBDA {
        dwconv_group_tile<N, count(), edges()>(r, bias, x);
    });
}

constexpr DwconvRowKernel dwconv_group_kernel() {
    if constexpr (s::kLanes >= 8) {
        return &dwconv_group_row<s::kLanes>;
    } else {
        return nullptr;
    }
}

// ---------------------------------------------------------------- pairs of rows

QUOLL_INLINE s::vecf<s::kLanes> load_value(const float* p) { return s::vecf<s::kLanes>::load(p); }
#if !defined(QUOLL_FLOAT_PAIRS)
QUOLL_INLINE s::vecf<s::kLanes> load_value(const uint16_t* p) { return s::load_bf16<s::kLanes>(p); }
#endif

// Outputs x to x + T - 1 of both rows: each input element is loaded once for all windows that have
// it. L and R as above.
template <class Value, int S, int T, int L, int R>
QUOLL_INLINE void dwconv_pair_tile(const DwconvPair& r, int x) {
    using V = s::vecf<s::kLanes>;
    constexpr size_t N = s::kLanes;
    const V bias = V::load(r.bias);
    V sum[2][T], w[9];
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) sum[0][t] = sum[1][t] = bias;
#pragma GCC unroll 16
    for (int k = 0; k < 9; k++) w[k] = V::load(r.weight + k * N);
    const Value* in = (const Value*)r.in + ((ptrdiff_t)x * S - r.before) * (ptrdiff_t)N;
#pragma GCC unroll 8
    for (int i = 0; i < 3 + S; i++) {
        if (i < r.first || i >= r.last) continue;
#pragma GCC unroll 32
        for (int j = L; j < (T - 1) * S + 3 - R; j++) {
            const V v = load_value(in + j * N);
#pragma GCC unroll 8
            for (int k = 0; k < 3; k++) {
                const int t = (j - k) / S;
                if (j < k || (j - k) % S != 0 || t >= T) continue;
                if (i < 3) sum[0][t] = fma(v, w[i * 3 + k], sum[0][t]);
                if (i >= S) sum[1][t] = fma(v, w[(i - S) * 3 + k], sum[1][t]);
            }
        }
        in += r.row_step;
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) {
        clamp(sum[0][t], r.low, r.high).store(r.out + (x + t) * N);
        clamp(sum[1][t], r.low, r.high).store(r.second + (x + t) * N);
    }
}

// The last tile computes some outputs of the one before again, rather than being shorter.
template <class Value, int S>
void dwconv_pair(const DwconvPair& pair) {
    const DwconvPair r = pair;
    constexpr int T = kDwconvPairOutputs;
    for (int x = 0;; x += T) {
        const bool end = x + T >= r.out_w;
        if (end) x = r.out_w - T;
        const bool left = x == 0 && r.before, right = end && r.after;
        if (left && right)
            dwconv_pair_tile<Value, S, T, 1, 1>(r, x);
        else if (left)
            dwconv_pair_tile<Value, S, T, 1, 0>(r, x);
        else if (right)
            dwconv_pair_tile<Value, S, T, 0, 1>(r, x);
        else
            dwconv_pair_tile<Value, S, T, 0, 0>(r, x);
        if (end) break;
    }
}

// Those of floats are assembly there (kernel_rows.inc).
#if defined(__aarch64__)
constexpr bool kFloatPairsByHand = true;
#else
constexpr bool kFloatPairsByHand = false;
#endif

template <class Value, int S>
constexpr DwconvPairKernel dwconv_pair_kernel() {
    constexpr bool by_hand = kFloatPairsByHand && std::is_same<Value, float>::value;
    if constexpr (QUOLL_ISA_REGISTERS >= 32 && s::kLanes >= 4 && !by_hand && !kFewKernels) {
        return &dwconv_pair<Value, S>;
    } else {
        return nullptr;
    }
}

// Builds with few kernels only have those for rows of any window.
template <size_t N, int K, int S>
constexpr DwconvRowKernel dwconv_row_kernel() {
    constexpr int kernel = kFewKernels ? 0 : K, stride = kFewKernels ? 0 : S;
    if constexpr (N <= s::kLanes) {
        return &dwconv_row<N, kernel, stride>;
    } else {
        return nullptr;
    }
}

// `count` floats, a multiple of N or more than N, in vectors of which the last may overlap the one
// before.
template <size_t N>
QUOLL_INLINE void copy_floats(const float* from, size_t count, float* to) {
    using V = s::vecf<N>;
    if (count < N) return V::load_n(from, count).store_n(to, count);
    size_t i = 0;
    for (; i + N <= count; i += N) V::load(from + i).store(to + i);
    if (i < count) V::load(from + count - N).store(to + count - N);
}

// May write a register more than asked for.
QUOLL_INLINE void fill_floats(float value, size_t count, float* to) {
    using V = s::vecf<s::kLanes>;
    for (size_t i = 0; i < count; i += s::kLanes) V::set(value).store(to + i);
}

// Elements 0, stride, 2 * stride, ... of N floats; `there`: those that may be read.
template <size_t N>
QUOLL_INLINE void copy_every(const float* from, size_t stride, size_t count, size_t, float* to) {
    for (size_t i = 0; i < count; i++) s::vecf<N>::load(from + i * stride * N).store(to + i * N);
}
template <>
QUOLL_INLINE void copy_every<1>(const float* from, size_t stride, size_t count, size_t there,
                                float* to) {
    using V = s::vecf<s::kLanes>;
    size_t i = 0;
    if (stride == 2 && count > V::kSize) {
        // Two registers hold one float more than is asked for.
        const size_t last = (2 * count <= there ? count : count - 1) - V::kSize;
        for (;; i += V::kSize) {
            if (i > last) i = last;
            even_lanes(V::load(from + 2 * i), V::load(from + 2 * i + V::kSize)).store(to + i);
            if (i == last) break;
        }
        i = last + V::kSize;
    }
    for (; i < count; i++) to[i] = from[i * stride];
}

void dwconv_pack_rows(const DwconvPackRows& r) {
    const size_t pack = (size_t)r.pack, stride = (size_t)r.stride, row = r.width * pack;
    const size_t limit = (size_t)r.before + r.in_w;
    for (size_t phase = 0; phase < stride; phase++) {
        // Elements before the input, and before its end.
        size_t begin = (size_t)r.before / stride + (phase < (size_t)r.before % stride ? 1 : 0);
        size_t end = limit / stride + (phase < limit % stride ? 1 : 0);
        begin = begin < r.width ? begin : r.width;
        end = end < begin ? begin : end < r.width ? end : r.width;
        float* to = r.to + phase * r.plane;
        fill_floats(r.pad_value, r.above * row, to);
        to += r.above * row;
        const float* in = r.in;
        if (begin < end) in += (ptrdiff_t)(begin * stride + phase - r.before) * (ptrdiff_t)pack;
        const size_t there = r.in_w + r.before - phase - begin * stride;
        for (int y = 0; y < r.rows; y++, in += r.row_step, to += row) {
            fill_floats(r.pad_value, begin * pack, to);
            float* const first = to + begin * pack;
            if (stride == 1)
                copy_floats<s::kLanes>(in, (end - begin) * pack, first);
            else if (pack == 1)
                copy_every<1>(in, stride, end - begin, there, first);
            else if (pack == 4)
                copy_every<4>(in, stride, end - begin, there, first);
            else
                copy_every<8>(in, stride, end - begin, there, first);
            fill_floats(r.pad_value, (r.width - end) * pack, to + end * pack);
        }
        fill_floats(r.pad_value, r.below * row, to);
    }
}

void dwconv_rows(const float* from, size_t pitch, int rows, size_t floats, float* to) {
    for (int y = 0; y < rows; y++, from += pitch, to += floats)
        copy_floats<s::kLanes>(from, floats, to);
}

template <int T>
QUOLL_INLINE void planes_tile(const DwconvPlanes& r, size_t x) {
    using V = s::vecf<s::kLanes>;
    V sum[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) sum[t] = V::load(r.bias);
    for (int i = 0; i < r.num_taps; i++) {
        const float* in = r.taps[i] + x;
        const V w = V::load(r.weight + i * s::kLanes);
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) sum[t] = fma(V::load(in + t * s::kLanes), w, sum[t]);
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; t++)
        clamp(sum[t], r.low, r.high).store(r.out + x + (size_t)t * s::kLanes);
}

void dwconv_planes(const DwconvPlanes& run) {
    const DwconvPlanes r = run;
    using V = s::vecf<s::kLanes>;
    const size_t lanes = s::kLanes;
    size_t x = 0;
    for (; x + 8 * lanes <= r.count; x += 8 * lanes) planes_tile<8>(r, x);
    for (; x + 2 * lanes <= r.count; x += 2 * lanes) planes_tile<2>(r, x);
    for (; x + lanes <= r.count; x += lanes) planes_tile<1>(r, x);
    if (x == r.count) return;
    const size_t n = r.count - x;
    V sum = V::load(r.bias);
    for (int i = 0; i < r.num_taps; i++)
        sum = fma(V::load_n(r.taps[i] + x, n), V::load(r.weight + i * lanes), sum);
    clamp(sum, r.low, r.high).store_n(r.out + x, n);
}

}  // namespace
}  // namespace quoll
