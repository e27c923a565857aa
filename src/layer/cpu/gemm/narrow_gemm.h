// Products of few columns. If B has fewer columns than half a register has lanes, the lanes run
// along k instead: both operands are read in blocks of `lanes` values of k, and the lanes of a sum
// are added up at its end.
#ifndef QUOLL_LAYER_CPU_GEMM_NARROW_GEMM_H
#define QUOLL_LAYER_CPU_GEMM_NARROW_GEMM_H

#include "layer/cpu/gemm/gemm.h"

namespace quoll {

enum { kGemmMostNarrow = 4 };

// Value (m, n) of C, at c + m * c_row + n * c_column, is clamp(bias[n] + residual + sum). The
// residual (or null) is laid out as C except for the step from column to column, and may be C.
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
    // [columns - 1]: the kernel, and its preferred number of rows. Null if registers are short.
    GemmNarrowKernel run[kGemmMostNarrow];
    int rows[kGemmMostNarrow];
};

}  // namespace quoll

#endif
