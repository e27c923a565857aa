// Panels of B: how many there are, and how wide.
#ifndef QUOLL_LAYER_CPU_GEMM_GEMM_PANELS_H
#define QUOLL_LAYER_CPU_GEMM_GEMM_PANELS_H

#include "layer/cpu/gemm/gemm_run.h"

namespace quoll {

inline size_t panel_columns(const GemmKernels& kernels) {
    return (size_t)kernels.lanes * kernels.vectors;
}

inline size_t panel_count(const GemmKernels& kernels, size_t n) {
    const size_t columns = panel_columns(kernels);
    return (n + columns - 1) / columns;
}

// The width of panel p of a matrix of n columns.
inline size_t panel_width(const GemmKernels& kernels, size_t n, size_t p) {
    return gemm_panel_width(kernels, n - p * panel_columns(kernels));
}

}  // namespace quoll

#endif
