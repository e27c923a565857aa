// Activations that other families' kernels apply to their results.
#ifndef QUOLL_LAYER_CPU_UNARY_FUSED_ACTIVATION_H
#define QUOLL_LAYER_CPU_UNARY_FUSED_ACTIVATION_H

#include <math.h>

#include "layer/common/activation.h"
#include "layer/cpu/cast/cast.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/unary/unary.h"
#include "runtime/parts.h"

namespace quoll {

// An activation as the kernels apply it: clamping is part of the store; anything else is a pass
// over finished results that are still in cache.
struct FusedActivation {
    float low, high;
    UnaryKernel pass;  // null: none
    float params[2];
    bool leaky;                   // the pass multiplies values below zero by params[0]
    const StorageKernels* pairs;  // not null: values are pairs of half floats

    FusedActivation()
        : low(-INFINITY), high(INFINITY), pass(nullptr), params(), leaky(false), pairs(nullptr) {}
    // to_bf16: results are rounded to bf16.
    FusedActivation(const KernelSet& kernels, const Activation& f, bool to_bf16 = false);
    // For a leaky ReLU that is max(x, slope * x), in half floats too: the slope; 1 for all others.
    float max_slope() const {
        return leaky && params[0] >= 0x1p-14f && params[0] < 1.f ? params[0] : 1.f;
    }
    void finish(float* values, size_t count) const {
        if (!pass) return;
        if (kHasHalfStorage && pairs) return finish_pairs(values, count);
        pass(values, values, count, params);
    }

private:
    void finish_pairs(float* values, size_t count) const;
};

}  // namespace quoll

#endif
