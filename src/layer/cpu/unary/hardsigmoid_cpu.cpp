#include "layer/activation/hardsigmoid.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class HardSigmoidCpu : public UnaryLayer<HardSigmoid> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = alpha, params[1] = beta;
        return k.hardsigmoid;
    }
};
}  // namespace

Layer* create_HardSigmoid_fast_layer() { return new HardSigmoidCpu; }

}  // namespace quoll
