#include "layer/activation/tanh.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class TanHCpu : public UnaryLayer<TanH> {
    UnaryKernel select(const UnaryKernels& k, float*) override { return k.tanh; }
};
}  // namespace

Layer* create_TanH_fast_layer() { return new TanHCpu; }

}  // namespace quoll
