#include "layer/activation/elu.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class ELUCpu : public UnaryLayer<ELU> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = alpha;
        return k.elu;
    }
};
}  // namespace

Layer* create_ELU_fast_layer() { return new ELUCpu; }

}  // namespace quoll
