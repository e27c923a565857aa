// Products whose weights are half floats and which add up half floats: what a processor with such
// arithmetic has twice as many of in a register. All else about them, A and C included, is fp32.
#ifndef QUOLL_LAYER_CPU_GEMM_HALF_GEMM_H
#define QUOLL_LAYER_CPU_GEMM_HALF_GEMM_H

#include "layer/cpu/gemm/gemm.h"

namespace quoll {

// The kernels of `gemm` with panels of half floats, as wide as 8 of its vectors; without tiles.
GemmKernels half_gemm(const GemmKernels& gemm);

}  // namespace quoll

#endif
