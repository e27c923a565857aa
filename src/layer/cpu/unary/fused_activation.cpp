#include "layer/cpu/unary/fused_activation.h"

#include <algorithm>

namespace quoll {

#if defined(QUOLL_FEW_ACTIVATIONS)
// The scalar reference, of activations whose kernels are left out of this build.
template <int type>
static void reference_kernel(const float* in, float* out, size_t n, const float* params) {
    for (size_t i = 0; i < n; i++) out[i] = activate(in[i], Activation(type, params[0], params[1]));
}
#define QUOLL_KERNEL_OR_REFERENCE(number, kernel) (kernel) ? (kernel) : reference_kernel<number>
#else
#define QUOLL_KERNEL_OR_REFERENCE(number, kernel) kernel
#endif

static UnaryKernel kernel_of(const UnaryKernels& k, const Activation& f) {
    switch (f.type) {
#define QUOLL_ACTIVATION(number, name, formula, kernel, ...) \
    case number:                                             \
        return QUOLL_KERNEL_OR_REFERENCE(number, kernel);
        QUOLL_ACTIVATIONS(QUOLL_ACTIVATION)
#undef QUOLL_ACTIVATION
    }
    return nullptr;
}
#undef QUOLL_KERNEL_OR_REFERENCE

FusedActivation::FusedActivation(const KernelSet& kernels, const Activation& f, bool to_bf16)
    : FusedActivation() {
    params[0] = f.a, params[1] = f.b;
    if (f.type == kActivationReLU)
        low = 0.f;
    else if (f.type == kActivationClip)
        low = f.a, high = f.b;
    else
        pass = kernel_of(*kernels.unary, f);
    if (kHasHalfStorage && pass && to_bf16) pass = bf16_kernel(*kernels.unary, pass);
    leaky = f.type == kActivationLeakyReLU;
    // Of half floats' kernels only that of slopes takes pairs.
    if (kHasHalfStorage && pass && kernels.f16 == &kernels && !leaky) pairs = &kernels.cast->f16;
}

void FusedActivation::finish_pairs(float* values, size_t count) const {
    enum { kMost = 128 };
    float wide[kMost];
    uint16_t* halves = (uint16_t*)values;
    for (size_t i = 0; i < 2 * count; i += kMost) {
        const size_t some = std::min<size_t>(kMost, 2 * count - i);
        pairs->widen(halves + i, wide, some);
        pass(wide, wide, some, params);
        pairs->narrow(wide, halves + i, some);
    }
}

}  // namespace quoll
