#include "layer/elementwise/power.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class PowerCpu : public UnaryLayer<Power> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = scale, params[1] = shift, params[2] = power;
        return power == 1.f ? k.linear : k.power;
    }
};
}  // namespace

Layer* create_Power_fast_layer() { return new PowerCpu; }

}  // namespace quoll
