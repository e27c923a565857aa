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

}  // namespace quoll

#endif
