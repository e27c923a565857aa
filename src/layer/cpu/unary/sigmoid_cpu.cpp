#include "layer/activation/sigmoid.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class SigmoidCpu : public UnaryLayer<Sigmoid> {
    UnaryKernel select(const UnaryKernels& k, float*) override { return k.sigmoid; }
};
}  // namespace

Layer* create_Sigmoid_fast_layer() { return new SigmoidCpu; }

}  // namespace quoll
