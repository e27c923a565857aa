#include "layer/elementwise/erf.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class ErfCpu : public UnaryLayer<Erf> {
    UnaryKernel select(const UnaryKernels& k, float*) override { return k.erf; }
};
}  // namespace

Layer* create_Erf_fast_layer() { return new ErfCpu; }

}  // namespace quoll
