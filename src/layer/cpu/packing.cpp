#include "layer/cpu/packing.h"

namespace quoll {

FusedActivation::FusedActivation(const KernelSet& kernels, const Activation& f)
    : FusedActivation() {
    params[0] = f.a, params[1] = f.b;
    switch (f.type) {
        case kActivationReLU:
            low = 0.f;
            break;
        case kActivationClip:
            low = f.a, high = f.b;
            break;
        case kActivationLeakyReLU:
            pass = kernels.unary->relu;
            leaky = true;
            break;
        case kActivationSigmoid:
            pass = kernels.unary->sigmoid;
            break;
        case kActivationMish:
            pass = kernels.unary->mish;
            break;
        case kActivationHardSwish:
            pass = kernels.unary->hardswish;
            break;
        case kActivationSwish:
            pass = kernels.unary->swish;
            params[0] = 1.f;
            break;
        case kActivationGelu:
            pass = f.a != 0.f ? kernels.unary->gelu_fast : kernels.unary->gelu;
            break;
    }
}

}  // namespace quoll
