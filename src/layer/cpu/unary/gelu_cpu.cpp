#include "layer/activation/gelu.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class GELUCpu : public UnaryLayer<GELU> {
    UnaryKernel select(const UnaryKernels& k, float*) override {
        return fast_gelu ? k.gelu_fast : k.gelu;
    }
};
}  // namespace

Layer* create_GELU_fast_layer() { return new GELUCpu; }

}  // namespace quoll
