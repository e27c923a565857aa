#include "layer/activation/relu.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class ReLUCpu : public UnaryLayer<ReLU> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = slope;
        return k.relu;
    }
};
}  // namespace

Layer* create_ReLU_fast_layer() { return new ReLUCpu; }

}  // namespace quoll
