#include "layer/tensor/expanddims.h"

#include "layer/cpu/layout/channel_gather.h"
#include "layer/cpu/layout/layouts.h"

namespace quoll {

namespace {

class ExpandDimsCpu : public ExpandDims {
public:
    ExpandDimsCpu() { support_packing = true; }
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override {
        std::vector<Shape> out;
        QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
        return reshape_channels(bottom, out[0], &top, opt);
    }
    void plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                      std::vector<BlobLayout>* out) const override {
        plan_reshaped(in[0], &(*out)[0]);
    }
};

}  // namespace

Layer* create_ExpandDims_fast_layer() { return new ExpandDimsCpu; }

}  // namespace quoll
