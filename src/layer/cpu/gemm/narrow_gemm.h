// Products of few columns. Where B has fewer columns than half a register, lanes run along k
// instead: both operands are read in blocks of `lanes` values of k, and the lanes of a sum are
// added up at its end.
#ifndef QUOLL_LAYER_CPU_GEMM_NARROW_GEMM_H
#define QUOLL_LAYER_CPU_GEMM_NARROW_GEMM_H

#include "layer/cpu/gemm/gemm.h"

namespace quoll {

enum { kGemmMostNarrow = 4 };

// Value (m, n) of C is at c + m * c_row + n * c_column: clamp(bias[n] + residual + sum), the
// residual (or null) laid out as C but for the step from column to column. It may be C.
struct GemmNarrow {
    const float* a;
    ptrdiff_t a_row;
    const GemmBlock* blocks;  // of `lanes` values of k
    size_t num_blocks;        // may be 0
    const float* b;           // [k / lanes][columns][lanes]
    const float* bias;
    const float* residual;
    ptrdiff_t residual_column;
    float* c;
    ptrdiff_t c_row, c_column;
    int rows;
    float low, high;
};
typedef void (*GemmNarrowKernel)(const GemmNarrow& product);

struct GemmNarrowKernels {
    // [columns - 1]: the kernel, and how many rows it likes best. Null where registers are short.
    GemmNarrowKernel run[kGemmMostNarrow];
    int rows[kGemmMostNarrow];
};

}  // namespace quoll

#endif
