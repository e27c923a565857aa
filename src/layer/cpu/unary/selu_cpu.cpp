#include "layer/activation/selu.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class SELUCpu : public UnaryLayer<SELU> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = alpha, params[1] = lambda;
        return k.selu;
    }
};
}  // namespace

Layer* create_SELU_fast_layer() { return new SELUCpu; }

}  // namespace quoll
