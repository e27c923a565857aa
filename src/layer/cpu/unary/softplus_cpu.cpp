#include "layer/activation/softplus.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class SoftplusCpu : public UnaryLayer<Softplus> {
    UnaryKernel select(const UnaryKernels& k, float*) override { return k.softplus; }
};
}  // namespace

Layer* create_Softplus_fast_layer() { return new SoftplusCpu; }

}  // namespace quoll
