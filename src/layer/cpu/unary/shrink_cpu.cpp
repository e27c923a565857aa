#include "layer/activation/shrink.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class ShrinkCpu : public UnaryLayer<Shrink> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = bias, params[1] = lambd;
        return k.shrink;
    }
};
}  // namespace

Layer* create_Shrink_fast_layer() { return new ShrinkCpu; }

}  // namespace quoll
