#include "layer/activation/bnll.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class BNLLCpu : public UnaryLayer<BNLL> {
    UnaryKernel select(const UnaryKernels& k, float*) override { return k.softplus; }
};
}  // namespace

Layer* create_BNLL_fast_layer() { return new BNLLCpu; }

}  // namespace quoll
