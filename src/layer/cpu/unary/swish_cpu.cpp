#include "layer/activation/swish.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class SwishCpu : public UnaryLayer<Swish> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = beta;
        return k.swish;
    }
};
}  // namespace

Layer* create_Swish_fast_layer() { return new SwishCpu; }

}  // namespace quoll
