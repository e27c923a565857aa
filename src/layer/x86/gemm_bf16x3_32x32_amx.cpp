#include "layer/x86/gemm_bf16_amx.h"

namespace quoll {

extern const SplitGemmKernels QUOLL_TILE_NAME(gemm_bf16x3_32x32);
const SplitGemmKernels QUOLL_TILE_NAME(gemm_bf16x3_32x32) = split_kernels<3>();

}  // namespace quoll
