// Loops of the norm family.
#pragma once

#include <math.h>

#include "layer/cpu/norm/norm.h"
#include "simd/convert.h"
#include "simd/math_bf16.h"
#include "simd/rsqrt.h"

namespace quoll {
namespace {

namespace s = simd;

// ---------------------------------------------------------------- reductions

struct Sum {
    static constexpr float kFirst = 0.f;
    template <class V>
    static QUOLL_INLINE V add(V sum, V x) {
        return sum + x;
    }
    template <class T>
    static QUOLL_INLINE T join(T a, T b) {
        return a + b;
    }
    template <class V>
    static QUOLL_INLINE float whole(V sum) {
        return reduce_add(sum);
    }
};

struct SumAbs : Sum {
    template <class V>
    static QUOLL_INLINE V add(V sum, V x) {
        return sum + abs(x);
    }
};

struct SumSquares : Sum {
    template <class V>
    static QUOLL_INLINE V add(V sum, V x) {
        return fma(x, x, sum);
    }
};

struct Max {
    static constexpr float kFirst = -INFINITY;
    template <class V>
    static QUOLL_INLINE V add(V sum, V x) {
        return s::maximum(x, sum);
    }
    static QUOLL_INLINE float join(float a, float b) { return a > b || isnan(a) ? a : b; }
    template <class V>
    static QUOLL_INLINE V join(V a, V b) {
        return s::maximum(a, b);
    }
    template <class V>
    static QUOLL_INLINE float whole(V most) {
        return any(s::is_nan(most)) ? NAN : reduce_max(most);
    }
};

struct Min {
    static constexpr float kFirst = INFINITY;
    template <class V>
    static QUOLL_INLINE V add(V sum, V x) {
        return s::minimum(x, sum);
    }
    static QUOLL_INLINE float join(float a, float b) { return a < b || isnan(a) ? a : b; }
    template <class V>
    static QUOLL_INLINE V join(V a, V b) {
        return s::minimum(a, b);
    }
    template <class V>
    static QUOLL_INLINE float whole(V least) {
        return any(s::is_nan(least)) ? NAN : reduce_min(least);
    }
};

// The partial results of N neighbouring values each; period divides N. A part waits for the one
// before it, hence four of them.
template <class Op, size_t N>
QUOLL_INLINE void reduce_lanes(const float* data, size_t n, size_t period, const float* about,
                               float* out) {
    using V = s::vecf<N>;
    float lanes[N];
    for (size_t i = 0; i < N; i++) lanes[i] = about ? about[i % period] : 0.f;
    const V centre = V::load(lanes);
    V part[4];
    s::unroll<4>([&](auto p) QUOLL_INLINE_LAMBDA { part[p] = V::set(Op::kFirst); });
    size_t i = 0;
    for (; i + 4 * N <= n; i += 4 * N)
        s::unroll<4>([&](auto p) QUOLL_INLINE_LAMBDA {
            part[p] = Op::add(part[p], V::load(data + i + p() * N) - centre);
        });
    for (; i + N <= n; i += N) part[0] = Op::add(part[0], V::load(data + i) - centre);
    Op::join(Op::join(part[0], part[1]), Op::join(part[2], part[3])).store(lanes);
    for (size_t j = 0; j < period; j++) {
        float whole = lanes[j];
        for (size_t k = j + period; k < N; k += period) whole = Op::join(whole, lanes[k]);
        out[j] = whole;
    }
    using Scalar = s::vecf<1>;
    for (; i < n; i++) {
        const size_t j = i % period;
        Op::add(Scalar::set(out[j]), Scalar::set(data[i] - (about ? about[j] : 0.f)))
            .store(out + j);
    }
}

// Numbers of the lanes, for those of a part of a vector: lanes < left.
template <class V>
QUOLL_INLINE typename V::Mask first_lanes(size_t left) {
    alignas(64) static const float kNumbers[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                   8, 9, 10, 11, 12, 13, 14, 15};
    return V::load(kNumbers) < V::set((float)left);
}

// Of all values together. Not inlined, since several functions use it.
template <class Op>
__attribute__((noinline)) float reduce_row(const float* data, size_t n, float about) {
    using V = s::vecf<s::kLanes>;
    const V centre = V::set(about);
    V part[4];
    s::unroll<4>([&](auto p) QUOLL_INLINE_LAMBDA { part[p] = V::set(Op::kFirst); });
    size_t i = 0;
    for (; i + 4 * s::kLanes <= n; i += 4 * s::kLanes)
        s::unroll<4>([&](auto p) QUOLL_INLINE_LAMBDA {
            part[p] = Op::add(part[p], V::load(data + i + p() * s::kLanes) - centre);
        });
    for (; i + s::kLanes <= n; i += s::kLanes)
        part[0] = Op::add(part[0], V::load(data + i) - centre);
    if (i < n) {
        const V x = V::load_n(data + i, n - i) - centre;
        part[1] = select(first_lanes<V>(n - i), Op::add(part[1], x), part[1]);
    }
    return Op::whole(Op::join(Op::join(part[0], part[1]), Op::join(part[2], part[3])));
}

template <class Op>
void norm_reduce(const float* data, size_t n, size_t period, const float* about, float* out) {
    constexpr size_t L = s::kLanes;
    if (period == 1) {
        *out = reduce_row<Op>(data, n, about ? *about : 0.f);
        return;
    }
    if (L % period == 0) return reduce_lanes<Op, L>(data, n, period, about, out);
    using Scalar = s::vecf<1>;
    for (size_t j = 0; j < period; j++) {
        Scalar whole = Scalar::set(Op::kFirst);
        for (size_t i = j; i < n; i += period)
            whole = Op::add(whole, Scalar::set(data[i] - (about ? about[j] : 0.f)));
        whole.store(out + j);
    }
}

// ---------------------------------------------------------------- softmax

// x to 8 bits, to nearest: what it is as bf16, but for magnitudes of less than 2^-126.
template <class V>
QUOLL_INLINE V eight_bits(V x) {
    const V moved = x * V::set(65537.f);
    return moved - (moved - x);
}

// to_bf16: what is made of the results is rounded to bf16.
template <bool to_bf16>
void softmax_row(float* data, size_t n, float scale, const float* mask, float* total) {
    using V = s::vecf<s::kLanes>;
    const V factor = V::set(scale);
    const size_t whole = n / s::kLanes * s::kLanes, left = n - whole;
    const auto some = first_lanes<V>(left);
    // Made twice rather than kept: that costs less than storing it.
    const auto value = [&](size_t i) QUOLL_INLINE_LAMBDA {
        const V x = V::load(data + i) * factor;
        return mask ? x + V::load(mask + i) : x;
    };
    const auto last = [&]() QUOLL_INLINE_LAMBDA {
        const V x = V::load_n(data + whole, left) * factor;
        return mask ? x + V::load_n(mask + whole, left) : x;
    };
    // NaN that these drop come back with the exponentials. Two, as each waits for itself.
    V most = V::set(-INFINITY), other = most;
    size_t i = 0;
    for (; i + 2 * s::kLanes <= whole; i += 2 * s::kLanes) {
        most = max(value(i), most);
        other = max(value(i + s::kLanes), other);
    }
    if (i < whole) other = max(value(i), other);
    most = max(other, most);
    if (left) most = select(some, max(last(), most), most);
    const V top = V::set(Max::whole(most));
    V rest = V::zero();  // not read back: a load would have to wait for the end of such a store
    const auto powers = [&](auto rounded) QUOLL_INLINE_LAMBDA {
        const auto power = [&](V x) QUOLL_INLINE_LAMBDA {
            if constexpr (!to_bf16)
                x = s::exp(x - top);
            else if constexpr (rounded())
                x = s::exp_bf16(x - top);
            else
                x = s::exp_of_difference(x - top);
            return rounded() && total ? eight_bits(x) : x;
        };
        V sum = V::zero();
        for (size_t k = 0; k < whole; k += s::kLanes) {
            const V x = power(value(k));
            x.store(data + k);
            sum = sum + x;
        }
        if (left) rest = select(some, power(last()), rest);
        return sum;
    };
    V sum;
    if constexpr (to_bf16)
        sum = total ? powers(std::true_type()) : powers(std::false_type());
    else
        sum = powers(std::true_type());
    if (total) {
        *total = reduce_add(sum + rest);
        if (left) rest.store_n(data + whole, left);
        return;
    }
    const V share = V::set(1.f / reduce_add(sum + rest));
    for (i = 0; i < whole; i += s::kLanes) (V::load(data + i) * share).store(data + i);
    if (left) (rest * share).store_n(data + whole, left);
}

// `left` of the first lanes exist.
QUOLL_INLINE void softmax_column(float* data, size_t count, size_t step, size_t left) {
    using V = s::vecf<s::kLanes>;
    V most = V::load_n(data, left);
    for (size_t i = 1; i < count; i++) most = max(V::load_n(data + i * step, left), most);
    V sum = V::zero();
    for (size_t i = 0; i < count; i++) {
        const V x = s::exp(V::load_n(data + i * step, left) - most);
        x.store_n(data + i * step, left);
        sum = sum + x;
    }
    const V factor = V::set(1.f) / sum;
    for (size_t i = 0; i < count; i++)
        (V::load_n(data + i * step, left) * factor).store_n(data + i * step, left);
}

void softmax_columns(float* data, size_t count, size_t step, size_t width) {
    size_t x = 0;
    for (; x + s::kLanes <= width; x += s::kLanes) softmax_column(data + x, count, step, s::kLanes);
    if (x < width) softmax_column(data + x, count, step, width - x);
}

void log_softmax_row(float* data, size_t n) {
    using V = s::vecf<s::kLanes>;
    const V top = V::set(reduce_row<Max>(data, n, 0.f));
    alignas(64) float part[s::kLanes] = {};
    V sum = V::zero();
    for (size_t i = 0; i < n; i += s::kLanes) {
        const V x = s::exp(V::load_n(data + i, n - i) - top);
        if (n - i >= s::kLanes) {
            sum = sum + x;
        } else {
            x.store_n(part, n - i);
            sum = sum + V::load(part);
        }
    }
    const V log_sum = s::log(V::set(reduce_add(sum)));
    for (size_t i = 0; i < n; i += s::kLanes)
        (V::load_n(data + i, n - i) - top - log_sum).store_n(data + i, n - i);
}

// `left` of the first lanes exist.
QUOLL_INLINE void log_softmax_column(float* data, size_t count, size_t step, size_t left) {
    using V = s::vecf<s::kLanes>;
    V most = V::load_n(data, left);
    for (size_t i = 1; i < count; i++) most = max(V::load_n(data + i * step, left), most);
    V sum = V::zero();
    for (size_t i = 0; i < count; i++) sum = sum + s::exp(V::load_n(data + i * step, left) - most);
    const V log_sum = s::log(sum);
    for (size_t i = 0; i < count; i++)
        (V::load_n(data + i * step, left) - most - log_sum).store_n(data + i * step, left);
}

void log_softmax_columns(float* data, size_t count, size_t step, size_t width) {
    for (size_t x = 0; x < width; x += s::kLanes)
        log_softmax_column(data + x, count, step, s::min_size(s::kLanes, width - x));
}

// ---------------------------------------------------------------- normalisation

void normalize_row(float* data, size_t n, float eps, const float* gamma, const float* beta) {
    using V = s::vecf<s::kLanes>;
    const float mean = reduce_row<Sum>(data, n, 0.f) / (float)n;
    const float variance = reduce_row<SumSquares>(data, n, mean) / (float)n;
    const V centre = V::set(mean), factor = V::set(1.f / sqrtf(variance + eps));
    const auto scaled = [&](V x, V g, V b) QUOLL_INLINE_LAMBDA {
        x = (x - centre) * factor;
        if (gamma) x = x * g;
        return beta ? x + b : x;
    };
    const float* g = gamma ? gamma : data;
    const float* b = beta ? beta : data;
    size_t i = 0;
    for (; i + s::kLanes <= n; i += s::kLanes)
        scaled(V::load(data + i), V::load(g + i), V::load(b + i)).store(data + i);
    const size_t left = n - i;
    if (left)
        scaled(V::load_n(data + i, left), V::load_n(g + i, left), V::load_n(b + i, left))
            .store_n(data + i, left);
}

void scale_centred(float* data, size_t n, size_t period, const float* mean, const float* factor,
                   const float* term, float low, float high) {
    using V = s::vecf<s::kLanes>;
    constexpr size_t L = s::kLanes;
    const V least = V::set(low), most = V::set(high);
    const auto scaled = [&](V x, V f, V t)
                            QUOLL_INLINE_LAMBDA { return min(most, max(least, fma(x, f, t))); };
    if (L % period == 0) {  // parameters stay in registers
        V m = V::set(*mean), f = V::set(*factor), t = V::set(term ? *term : 0.f);
        if (period > 1) {  // loads that wait for the stores
            alignas(64) float lanes[3][L];
            for (size_t i = 0; i < L; i++) {
                const size_t j = i % period;
                lanes[0][i] = mean[j], lanes[1][i] = factor[j], lanes[2][i] = term ? term[j] : 0.f;
            }
            m = V::load(lanes[0]), f = V::load(lanes[1]), t = V::load(lanes[2]);
        }
        size_t i = 0;
        for (; i + 4 * L <= n; i += 4 * L)
            s::unroll<4>([&](auto p) QUOLL_INLINE_LAMBDA {
                float* const x = data + i + p() * L;
                scaled(V::load(x) - m, f, t).store(x);
            });
        for (; i < n; i += L) scaled(V::load_n(data + i, n - i) - m, f, t).store_n(data + i, n - i);
        return;
    }
    for (size_t first = 0; first < n; first += period) {
        for (size_t j = 0; j < period; j += L) {
            const size_t left = period - j;
            const V x = V::load_n(data + first + j, left) - V::load_n(mean + j, left);
            const V t = term ? V::load_n(term + j, left) : V::zero();
            scaled(x, V::load_n(factor + j, left), t).store_n(data + first + j, left);
        }
    }
}

void rms_row(float* data, size_t n, float eps, const float* gamma) {
    using V = s::vecf<s::kLanes>;
    const float squares = reduce_row<SumSquares>(data, n, 0.f);
    const V factor = V::set(1.f / sqrtf(squares / (float)n + eps));
    for (size_t i = 0; i < n; i += s::kLanes) {
        V x = V::load_n(data + i, n - i) * factor;
        if (gamma) x = x * V::load_n(gamma + i, n - i);
        x.store_n(data + i, n - i);
    }
}

// ---------------------------------------------------------------- local response normalisation

template <class V>
QUOLL_INLINE V lrn_value(const LrnAcross& t, V x, V sum) {
    const V base = fma(sum, V::set(t.scale), V::set(t.bias));
    if (t.beta == 0.f) return x;
    if (t.beta == 0.75f) {  // the usual one, without exp and log
        if constexpr (s::kHasFastRsqrt) {
            const auto usual = (base > V::set(0x1p-60f)) & (base < V::set(0x1p60f));
            if (!any(!usual)) {
                const V r = s::fast_rsqrt(base);
                return x * (r * (r * s::fast_rsqrt(r)));  // r^2 / sqrt(r) = base^-3/4
            }
        }
        const V root = sqrt(base);
        return x / (root * sqrt(root));
    }
    return x * s::exp(V::set(-t.beta) * s::log(base));
}

// Pixels of a channel are neighbours.
void lrn_planar(const LrnAcross& t) {
    using V = s::vecf<s::kLanes>;
    constexpr size_t kRun = 64;  // floats of each channel that stay in cache with their neighbours
    for (size_t start = 0; start < t.pixels; start += kRun) {
        const size_t end = s::min_size(start + kRun, t.pixels);
        for (int c = 0; c < t.blocks; c++) {
            const int low = c < t.before ? 0 : c - t.before;
            const int high = t.blocks - 1 - c < t.after ? t.blocks - 1 : c + t.after;
            for (size_t i = start; i < end; i += s::kLanes) {
                V sum = V::zero();
                for (int d = low; d <= high; d++) {
                    const V x = V::load_n(t.in + d * t.step + i, end - i);
                    sum = fma(x, x, sum);
                }
                const V x = V::load_n(t.in + c * t.step + i, end - i);
                lrn_value(t, x, sum).store_n(t.out + c * t.step + i, end - i);
            }
        }
    }
}

// Channels of a block are neighbours: the squares of a pixel's channels lie in a row between zeros.
// N channels at a time; N divides the channels of a block.
template <size_t N>
void lrn_blocked(const LrnAcross& t) {
    using V = s::vecf<N>;
    const size_t before = t.before, after = t.after, pack = t.pack, channels = t.blocks * pack;
    const size_t length = before + channels + after;
    for (size_t p = 0; p < kLrnPixels; p++) {
        float* squares = t.scratch + p * length;
        for (size_t i = 0; i < before; i++) squares[i] = 0.f;
        for (size_t i = before + channels; i < length; i++) squares[i] = 0.f;
    }
    for (size_t start = 0; start < t.pixels; start += kLrnPixels) {
        const size_t pixels = s::min_size(kLrnPixels, t.pixels - start);
        // f(channel, its place in the blobs) for every N channels of a pixel.
        const auto each = [&](size_t p, auto f) QUOLL_INLINE_LAMBDA {
            for (int q = 0; q < t.blocks; q++)
                for (size_t j = 0; j < pack; j += N)
                    f(q * pack + j, q * t.step + (start + p) * pack + j);
        };
        for (size_t p = 0; p < pixels; p++) {
            each(p, [&](size_t c, size_t place) QUOLL_INLINE_LAMBDA {
                const V x = V::load(t.in + place);
                (x * x).store(t.scratch + p * length + before + c);
            });
        }
        for (size_t p = 0; p < pixels; p++) {
            each(p, [&](size_t c, size_t place) QUOLL_INLINE_LAMBDA {
                const float* squares = t.scratch + p * length + c;
                V sum = V::load(squares);
                for (size_t d = 1; d <= before + after; d++) sum = sum + V::load(squares + d);
                lrn_value(t, V::load(t.in + place), sum).store(t.out + place);
            });
        }
    }
}

void lrn_across(const LrnAcross& t) {
    if (t.pack == 1) return lrn_planar(t);
    if (t.pack % s::kLanes == 0) return lrn_blocked<s::kLanes>(t);
    if constexpr (s::kLanes > 4) {
        if (t.pack == 4) return lrn_blocked<4>(t);
    }
    if constexpr (s::kLanes > 8) lrn_blocked<8>(t);
}

}  // namespace
}  // namespace quoll
