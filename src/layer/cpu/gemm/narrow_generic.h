// Products of few columns on vectors of any width.
#pragma once

#include "layer/cpu/gemm/narrow_gemm.h"
#include "simd/vec.h"

namespace quoll {
namespace {

// The registers hold the sums, a value of B for each column, and one of A.
template <size_t columns>
constexpr size_t narrow_rows() {
    constexpr size_t most = (QUOLL_ISA_REGISTERS - 1 - columns) / columns;
    return most < 8 ? most : 8;
}

template <size_t columns, size_t rows>
QUOLL_INLINE void narrow_tile(const GemmNarrow& t, int m0) {
    using V = simd::vecf<simd::kLanes>;
    constexpr size_t L = simd::kLanes;
    V sum[rows * columns];
    simd::unroll<rows * columns>([&](auto i) QUOLL_INLINE_LAMBDA { sum[i] = V::zero(); });
    const ptrdiff_t row = t.a_row;
    const float* const a = t.a + m0 * row;
    const GemmBlock* const end = t.blocks + t.num_blocks;
    for (const GemmBlock* block = t.blocks; block != end; block++) {
        const float* const p = a + block->a;
        const float* const b = t.b + block->k * columns;
        V column[columns];
        simd::unroll<columns>([&](auto n)
                                  QUOLL_INLINE_LAMBDA { column[n] = V::load(b + n() * L); });
        simd::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
            const V x = V::load(p + (ptrdiff_t)m() * row);
            simd::unroll<columns>([&](auto n) QUOLL_INLINE_LAMBDA {
                sum[m * columns + n] = fma(x, column[n], sum[m * columns + n]);
            });
        });
    }
    for (size_t m = 0; m < rows; m++)
        for (size_t n = 0; n < columns; n++) {
            const ptrdiff_t at = (ptrdiff_t)(m0 + m) * t.c_row;
            float value = reduce_add(sum[m * columns + n]) + t.bias[n];
            if (t.residual) value += t.residual[at + (ptrdiff_t)n * t.residual_column];
            value = value < t.low ? t.low : value;  // a NaN stays
            t.c[at + (ptrdiff_t)n * t.c_column] = value > t.high ? t.high : value;
        }
}

template <size_t columns>
void gemm_narrow(const GemmNarrow& t) {
    constexpr size_t most = narrow_rows<columns>();
    int m = 0;
    for (; m + (int)most <= t.rows; m += (int)most) narrow_tile<columns, most>(t, m);
    if constexpr (most > 4)
        for (; m + 4 <= t.rows; m += 4) narrow_tile<columns, 4>(t, m);
    if constexpr (most > 2)
        for (; m + 2 <= t.rows; m += 2) narrow_tile<columns, 2>(t, m);
    for (; m < t.rows; m++) narrow_tile<columns, 1>(t, m);
}

constexpr GemmNarrowKernels narrow_kernels() {
    if constexpr (simd::kLanes >= 8) {
        return {{&gemm_narrow<1>, &gemm_narrow<2>, &gemm_narrow<3>, &gemm_narrow<4>},
                {narrow_rows<1>(), narrow_rows<2>(), narrow_rows<3>(), narrow_rows<4>()}};
    } else {
        return {};
    }
}

}  // namespace
}  // namespace quoll
