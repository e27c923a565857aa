// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/unary/generic.h"
#include "layer/cpu/unary/unary.h"

namespace quoll {

namespace {

#if defined(QUOLL_ONLY_ACTIVATIONS)
struct Members {
#define QUOLL_UNARY(name, functor, num_params) \
    UnaryKernel UnaryKernels::*name = &UnaryKernels::name;
#include "layer/cpu/unary/kernels.inc"
#undef QUOLL_UNARY
};

// What fused_activation.cpp takes.
constexpr bool is_wanted(UnaryKernel UnaryKernels::*kernel) {
    constexpr Members k{};
#if defined(QUOLL_FEW_ACTIVATIONS)
    for (const auto left_out : {k.sigmoid, k.mish, k.swish, k.gelu, k.gelu_fast})
        if (kernel == left_out) return false;
#endif
    for (const float a : {0.f, 1.f}) {
        const struct { float a; } f = {a};
#define QUOLL_ACTIVATION(number, name, formula, member, ...) \
    if (kernel == (member)) return true;
        QUOLL_ACTIVATIONS(QUOLL_ACTIVATION)
#undef QUOLL_ACTIVATION
        (void)f;
    }
    return false;
}
#else
constexpr bool is_wanted(UnaryKernel UnaryKernels::*) { return true; }
#endif

}  // namespace

extern const UnaryKernels QUOLL_ISA_TABLE(unary_kernels);
const UnaryKernels QUOLL_ISA_TABLE(unary_kernels) = {
#define QUOLL_UNARY(name, functor, num_params) \
    is_wanted(&UnaryKernels::name) ? &unary_kernel<functor> : nullptr,
#include "layer/cpu/unary/kernels.inc"
#undef QUOLL_UNARY
};

}  // namespace quoll
