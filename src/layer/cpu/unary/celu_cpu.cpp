#include "layer/activation/celu.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class CELUCpu : public UnaryLayer<CELU> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = alpha;
        return k.celu;
    }
};
}  // namespace

Layer* create_CELU_fast_layer() { return new CELUCpu; }

}  // namespace quoll
