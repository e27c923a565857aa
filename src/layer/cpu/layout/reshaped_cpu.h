#ifndef QUOLL_LAYER_CPU_LAYOUT_RESHAPED_CPU_H
#define QUOLL_LAYER_CPU_LAYOUT_RESHAPED_CPU_H

#include "layer/cpu/layout/channel_gather.h"
#include "layer/cpu/layout/layouts.h"

namespace quoll {

// An operator whose output has the values of its input in their order, with other axes.
template <class Operator>
class ReshapedCpu : public Operator {
public:
    ReshapedCpu() { this->support_packing = true; }
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override {
        std::vector<Shape> out;
        QUOLL_RETURN_IF_ERROR(this->shape(*this, {bottom.logical_shape()}, out));
        return reshape_channels(bottom, out[0], &top, opt);
    }
    void plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                      std::vector<BlobLayout>* out) const override {
        plan_reshaped(in[0], &(*out)[0]);
    }
};

}  // namespace quoll

#endif
