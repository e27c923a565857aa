#include "layer/activation/clip.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class ClipCpu : public UnaryLayer<Clip> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = min, params[1] = max;
        return k.clip;
    }
};
}  // namespace

Layer* create_Clip_fast_layer() { return new ClipCpu; }

}  // namespace quoll
