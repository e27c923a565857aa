// Unary kernels: out[i] = f(in[i]) over contiguous floats.
//
// in and out need no alignment and may be equal, but not overlap otherwise; exactly n values are
// read and written. params points to the floats that kernels.inc lists for the function (null when
// there are none). NaN in gives NaN out unless noted; errors are those of simd/math.h.
#ifndef QUOLL_LAYER_CPU_UNARY_UNARY_H
#define QUOLL_LAYER_CPU_UNARY_UNARY_H

#include <stddef.h>

namespace quoll {

typedef void (*UnaryKernel)(const float* in, float* out, size_t n, const float* params);

struct UnaryKernels {
#define QUOLL_UNARY(name, functor, num_params) UnaryKernel name;
#include "layer/cpu/unary/kernels.inc"
#undef QUOLL_UNARY
};

// The kernel that may replace `kernel` if results are rounded to bf16: one that is only as exact as
// that requires, or `kernel` itself.
inline UnaryKernel bf16_kernel(const UnaryKernels& k, UnaryKernel kernel) {
    const UnaryKernel found = kernel == k.sigmoid     ? k.sigmoid_bf16
                              : kernel == k.tanh      ? k.tanh_bf16
                              : kernel == k.swish     ? k.swish_bf16
                              : kernel == k.mish      ? k.mish_bf16
                              : kernel == k.gelu      ? k.gelu_bf16
                              : kernel == k.gelu_fast ? k.gelu_fast_bf16
                                                      : nullptr;
    return found ? found : kernel;
}

}  // namespace quoll

#endif
