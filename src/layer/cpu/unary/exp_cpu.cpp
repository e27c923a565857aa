#include "layer/elementwise/exp.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class ExpCpu : public UnaryLayer<Exp> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = scale, params[1] = shift, params[2] = base;
        return base == -1.f ? k.exp_linear : k.pow_base;
    }
};
}  // namespace

Layer* create_Exp_fast_layer() { return new ExpCpu; }

}  // namespace quoll
