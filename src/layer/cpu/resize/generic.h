// Sampling of images at points: some points at a time, all channels of them.
#pragma once

#include <math.h>

#include "layer/cpu/resize/resize.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;
using Points = s::vecf<s::kLanes>;

// Coordinates in pixels.
QUOLL_INLINE Points from_grid(const GridAxis& a, Points x) {
    const Points one = Points::set(1.f), half = Points::set(.5f);
    x = select(x == x, x, Points::set(-1.f));  // NaN, as in the reference
    if (a.align_corner) return (x + one) * half * Points::set((float)(a.size - 1));
    return ((x + one) * Points::set((float)a.size) - one) * half;
}

// Mirrored at 0 and `high` as often as needed. What lies many images away is left to fmod, which
// rounds nothing.
QUOLL_INLINE Points reflect(Points x, float high) {
    if (high == 0.f) return Points::zero();
    const Points period = Points::set(2 * high), far = abs(x);
    Points at = nfma(floor(far / period), period, far);
    at = select(at < Points::zero(), at + period, at);
    if (any(!(far < Points::set(1024.f * high)))) {
        float lanes[s::kLanes];
        far.store(lanes);
        for (float& lane : lanes) lane = fmodf(lane, 2 * high);
        at = Points::load(lanes);
    }
    return select(at > Points::set(high), period - at, at);
}

__attribute__((noinline)) Points pad(const GridAxis& a, Points x) {
    const Points half = Points::set(.5f);
    if (!a.clamps && !a.reflects) return x;
    if (a.reflects)
        x = a.align_corner ? reflect(x, (float)(a.size - 1))
                           : reflect(x + half, (float)a.size) - half;
    // NaN becomes the first pixel, as in the reference.
    const Points last = Points::set((float)(a.size - 1));
    return select(Points::zero() < x, min(x, last), Points::zero());
}

// Pixels that make up a value along one axis: whether there is one, which, and its weight.
struct Taps {
    typename Points::Mask inside[4];
    Points index[4], weight[4];

    QUOLL_INLINE void set(const GridAxis& a, int i, Points whole) {
        inside[i] = (whole >= Points::zero()) & (whole < Points::set((float)a.size));
        index[i] = select(inside[i], whole, Points::zero());
    }
};

// Keys' cubic convolution, as in the reference.
QUOLL_INLINE Points near_weight(Points x) {
    const float a = -0.75f;
    const Points c = Points::set(a + 2) * x - Points::set(a + 3);
    return c * x * x + Points::set(1.f);
}
QUOLL_INLINE void cubic_weights(Points at, Points* weight) {
    const float a = -0.75f;
    const Points one = Points::set(1.f), far = at + one;
    const Points square = (Points::set(a) * far - Points::set(5 * a)) * far;
    weight[0] = (square + Points::set(8 * a)) * far - Points::set(4 * a);
    weight[1] = near_weight(at);
    weight[2] = near_weight(one - at);
    weight[3] = one - weight[0] - weight[1] - weight[2];
}

// 1, 2 or 4 taps: nearest, linear or cubic. Not inlined: it is long, and there are two axes.
__attribute__((noinline)) void taps_of(const GridAxis& a, int taps, Points x, Taps* t) {
    const Points one = Points::set(1.f), second = floor(x), start = taps == 4 ? second - one : x;
    // Not computed from `start`, which is rounded beyond 2^24.
    if (taps == 4) cubic_weights(x - second, t->weight);
    for (int i = 0; i < (taps == 4 ? 4 : 1); i++) {
        const Points p = pad(a, start + Points::set((float)i)), low = floor(p);
        if (taps == 4) {
            t->set(a, i, trunc(p));
        } else if (taps == 1) {
            t->set(a, 0, a.exact ? round(p) : floor(p + Points::set(.5f)));
            t->weight[0] = one;
        } else {
            t->weight[1] = p - low;
            t->weight[0] = one - t->weight[1];
            t->set(a, 0, low);
            t->set(a, 1, low + one);
        }
    }
}

#if defined(__AVX2__)
QUOLL_INLINE void linear_taps(const GridAxis& a, Points x, Taps* t) {
    const Points one = Points::set(1.f);
    if (a.clamps || a.reflects) x = pad(a, x);
    const Points low = floor(x);
    t->weight[1] = x - low;
    t->weight[0] = one - t->weight[1];
    t->set(a, 0, low);
    t->set(a, 1, low + one);
}

// What most networks sample by, all in registers: the same as below but for the signs of zeros.
void sample_linear(const GridPoints& t) {
    for (size_t i = 0; i < t.n; i += s::kLanes) {
        const size_t left = t.n - i;
        Taps x, y;
        linear_taps(t.across, from_grid(t.across, Points::load_n(t.x + i, left)), &x);
        linear_taps(t.down, from_grid(t.down, Points::load_n(t.y + i, left)), &y);
        const Points width = Points::set((float)t.across.size);
        const Points begin = t.begin ? Points::load_n(t.begin + i, left) : Points::zero();
        const Points top = fma(y.index[0], width, begin), bottom = fma(y.index[1], width, begin);
        const auto tap = [&](const float* plane, int u, int v) QUOLL_INLINE_LAMBDA {
            const Points at = (v ? bottom : top) + x.index[u];
            return select(x.inside[u] & y.inside[v], gather(plane, trunc_int(at)), Points::zero()) *
                   x.weight[u];
        };
        for (int q = 0; q < t.channels; q++) {
            const float* plane = t.image + q * t.image_step;
            const Points upper = tap(plane, 0, 0) + tap(plane, 1, 0);
            const Points lower = tap(plane, 0, 1) + tap(plane, 1, 1);
            (upper * y.weight[0] + lower * y.weight[1]).store_n(t.out + q * t.out_step + i, left);
        }
    }
}
#endif

// The loops over taps stay loops, for the sake of their size.
void sample_points(const GridPoints& t) {
#if defined(__AVX2__)
    if (t.taps == 2) return sample_linear(t);
#endif
    for (size_t i = 0; i < t.n; i += s::kLanes) {
        const size_t left = t.n - i;
        Taps x, y;
        taps_of(t.across, t.taps, from_grid(t.across, Points::load_n(t.x + i, left)), &x);
        taps_of(t.down, t.taps, from_grid(t.down, Points::load_n(t.y + i, left)), &y);
        const Points begin = t.begin ? Points::load_n(t.begin + i, left) : Points::zero();
        for (int v = 0; v < t.taps; v++)
            y.index[v] = fma(y.index[v], Points::set((float)t.across.size), begin);
        for (int q = 0; q < t.channels; q++) {
            const float* plane = t.image + q * t.image_step;
            Points sum = Points::zero();
            for (int v = 0; v < t.taps; v++) {
                Points line = Points::zero();
                for (int u = 0; u < t.taps; u++) {
                    const Points pixel = gather(plane, trunc_int(y.index[v] + x.index[u]));
                    line = line +
                           select(x.inside[u] & y.inside[v], pixel, Points::zero()) * x.weight[u];
                }
                sum = sum + line * y.weight[v];
            }
            sum.store_n(t.out + q * t.out_step + i, left);
        }
    }
}

}  // namespace
}  // namespace quoll
