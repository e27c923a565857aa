#include "layer/activation/mish.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class MishCpu : public UnaryLayer<Mish> {
    UnaryKernel select(const UnaryKernels& k, float*) override { return k.mish; }
};
}  // namespace

Layer* create_Mish_fast_layer() { return new MishCpu; }

}  // namespace quoll
