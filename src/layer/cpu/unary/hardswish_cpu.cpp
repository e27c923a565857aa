#include "layer/activation/hardswish.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class HardSwishCpu : public UnaryLayer<HardSwish> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = alpha, params[1] = beta;
        return k.hardswish;
    }
};
}  // namespace

Layer* create_HardSwish_fast_layer() { return new HardSwishCpu; }

}  // namespace quoll
