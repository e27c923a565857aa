// Products of planar blobs (GemmPlanarTile): lanes hold neighbouring pixels, so that results are
// stored without a transpose.
#pragma once

#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/gemm/gemm.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

// Sums, the pixels and one weight share the registers.
constexpr size_t kPlanarSums =
    (QUOLL_ISA_REGISTERS - kPlanarVectors - 1) / kPlanarVectors / kPlanarColumns * kPlanarColumns;

template <size_t columns>
QUOLL_INLINE void planar_columns(const GemmPlanarTile& t, size_t first, size_t used) {
    using V = s::vecf<s::kLanes>;
    constexpr size_t vectors = kPlanarVectors;
    V sum[columns * vectors];
    const float *in = (const float*)t.in, *b = (const float*)t.b + first;
    const float* const bias = (const float*)t.bias + first;
    s::unroll<columns>([&](auto n) QUOLL_INLINE_LAMBDA {
        const V start = V::set(bias[n()]);
        s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA { sum[n * vectors + v] = start; });
    });
    const ptrdiff_t in_step = t.in_step;
    const size_t b_step = t.b_step;
    size_t k = t.k;
    do {
        V pixels[vectors];
        s::unroll<vectors>([&](auto v)
                               QUOLL_INLINE_LAMBDA { pixels[v] = V::load(in + v() * s::kLanes); });
        s::unroll<columns>([&](auto n) QUOLL_INLINE_LAMBDA {
            const V weight = V::set(b[n()]);
            s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
                sum[n * vectors + v] = fma(weight, pixels[v], sum[n * vectors + v]);
            });
        });
        in += in_step;
        b += b_step;
    } while (--k);
    const V low = V::set(t.low), high = V::set(t.high);
    float* out = (float*)t.out + (ptrdiff_t)first * t.out_step;
    s::unroll<columns>([&](auto n) QUOLL_INLINE_LAMBDA {
        if (n() >= used) return;
        s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
            min(high, max(low, sum[n * vectors + v])).store(out + v() * s::kLanes);
        });
        out += t.out_step;
    });
}

template <size_t columns>
void gemm_planar(const GemmPlanarTile& t) {
    constexpr size_t some = columns < kPlanarSums ? columns : kPlanarSums;
    for (size_t n = 0; n < columns && n < t.used; n += some) planar_columns<some>(t, n, t.used - n);
}

// Shorter registers gain less, and those of ARM have kernels by hand.
constexpr bool kPlanarByVectors = !kFewKernels && s::kLanes >= 8;

template <size_t columns>
constexpr GemmPlanarKernel planar_or_null() {
    if constexpr (kPlanarByVectors) {
        return &gemm_planar<columns>;
    } else {
        return nullptr;
    }
}

}  // namespace
}  // namespace quoll
