#include "layer/elementwise/absval.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class AbsValCpu : public UnaryLayer<AbsVal> {
    UnaryKernel select(const UnaryKernels& k, float*) override { return k.abs; }
};
}  // namespace

Layer* create_AbsVal_fast_layer() { return new AbsValCpu; }

}  // namespace quoll
