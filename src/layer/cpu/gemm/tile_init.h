// What tiles with a residual start from (GemmInit), for blocks of `pack` floats.
#pragma once

#include "layer/cpu/gemm/gemm.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

template <size_t pack, size_t blocks>
QUOLL_INLINE void gemm_init_columns(const GemmInit& t, size_t j) {
    using V = s::vecf<pack>;
    // Copies, which stores cannot change.
    const ptrdiff_t r_row = t.r_row, r_block = t.r_block;
    const size_t init_row = t.init_row;
    const float* r = t.r + (ptrdiff_t)(j / pack) * r_block;
    float* init = t.init + j;
    V bias[blocks];
    s::unroll<blocks>([&](auto i)
                          QUOLL_INLINE_LAMBDA { bias[i] = V::load(t.bias + j + i() * pack); });
    for (int m = t.rows; m > 0; m--, r += r_row, init += init_row)
        s::unroll<blocks>([&](auto i) QUOLL_INLINE_LAMBDA {
            (bias[i] + V::load(r + (ptrdiff_t)i() * r_block)).store(init + i() * pack);
        });
}

template <size_t pack>
void gemm_init(const GemmInit& t) {
    size_t j = 0;
    if constexpr (pack == s::kLanes)  // of other blocks residuals are rare
        for (; j + 4 * pack <= t.count; j += 4 * pack) gemm_init_columns<pack, 4>(t, j);
    for (; j < t.count; j += pack) gemm_init_columns<pack, 1>(t, j);
}

}  // namespace
}  // namespace quoll
