#include "layer/x86/gemm_bf16_amx.h"

namespace quoll {

#if !defined(QUOLL_EMULATE_TILES)
extern const SplitGemmKernels gemm_bf16x6_32x32_amx;
const SplitGemmKernels gemm_bf16x6_32x32_amx = split_kernels<6>();
#else
extern const SplitGemmKernels gemm_bf16x6_32x32_emulated;
const SplitGemmKernels gemm_bf16x6_32x32_emulated = split_kernels<6>();
#endif

}  // namespace quoll
