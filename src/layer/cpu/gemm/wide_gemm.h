// Products on vectors longer than those of the vector level, on which all other kernels run: SVE
// beside NEON.
#ifndef QUOLL_LAYER_CPU_GEMM_WIDE_GEMM_H
#define QUOLL_LAYER_CPU_GEMM_WIDE_GEMM_H

#include "layer/cpu/gemm/gemm.h"

namespace quoll {

// The kernels of `gemm` with panels of up to four vectors of so many lanes, at most 64 columns;
// without tiles.
GemmKernels wide_gemm(const GemmKernels& gemm, int lanes);

// The kernels of `half`, of panels as wide as those of `wide`, each float of whose C is two half
// floats; without tiles: what packs weights for these.
GemmKernels wide_half_gemm(const GemmKernels& half, const GemmKernels& wide);

// `gemm` for packing panels as wide as those of the vector level, which kernels of other families
// read (cast.h).
GemmKernels level_gemm(const GemmKernels& gemm);

}  // namespace quoll

#endif
