// Whether special-case kernels that more general ones can replace are left out, for a small library
// (QUOLL_SMALL_KERNELS in cmake/isa.cmake).
#ifndef QUOLL_LAYER_CPU_COMMON_FEW_KERNELS_H
#define QUOLL_LAYER_CPU_COMMON_FEW_KERNELS_H

namespace quoll {

#if defined(QUOLL_FEW_KERNELS)
constexpr bool kFewKernels = true;
#else
constexpr bool kFewKernels = false;
#endif

// Whether a build may have KernelSet::f16f32.
#if defined(__aarch64__) && !defined(QUOLL_FEW_KERNELS)
constexpr bool kHasF16F32 = true;
#else
constexpr bool kHasF16F32 = false;
#endif

}  // namespace quoll

#endif
