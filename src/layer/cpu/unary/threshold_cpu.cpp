#include "layer/activation/threshold.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class ThresholdCpu : public UnaryLayer<Threshold> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = threshold;
        return k.threshold;
    }
};
}  // namespace

Layer* create_Threshold_fast_layer() { return new ThresholdCpu; }

}  // namespace quoll
