#include "layer/cpu/unary/fused_activation.h"

namespace quoll {

static UnaryKernel kernel_of(const UnaryKernels& k, const Activation& f) {
    switch (f.type) {
#define QUOLL_ACTIVATION(number, name, formula, kernel, ...) \
    case number:                                             \
        return kernel;
        QUOLL_ACTIVATIONS(QUOLL_ACTIVATION)
#undef QUOLL_ACTIVATION
    }
    return nullptr;
}

FusedActivation::FusedActivation(const KernelSet& kernels, const Activation& f)
    : FusedActivation() {
    params[0] = f.a, params[1] = f.b;
    if (f.type == kActivationReLU)
        low = 0.f;
    else if (f.type == kActivationClip)
        low = f.a, high = f.b;
    else
        pass = kernel_of(*kernels.unary, f);
    leaky = f.type == kActivationLeakyReLU;
}

}  // namespace quoll
