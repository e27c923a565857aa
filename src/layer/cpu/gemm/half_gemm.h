// Products whose weights and sums are half floats: a register holds twice as many of them, on
// processors with such arithmetic. Everything else, A and C included, is fp32.
#ifndef QUOLL_LAYER_CPU_GEMM_HALF_GEMM_H
#define QUOLL_LAYER_CPU_GEMM_HALF_GEMM_H

#include "layer/cpu/gemm/gemm.h"

namespace quoll {

// The kernels of `gemm` with panels of half floats, as wide as 8 of its vectors; without tiles.
GemmKernels half_gemm(const GemmKernels& gemm);

}  // namespace quoll

#endif
