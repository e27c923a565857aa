#include "layer/x86/gemm_bf16_amx.h"

namespace quoll {

extern const SplitGemmKernels QUOLL_TILE_NAME(gemm_bf16x6_32x32);
const SplitGemmKernels QUOLL_TILE_NAME(gemm_bf16x6_32x32) = split_kernels<6>();

}  // namespace quoll
