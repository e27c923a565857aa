#include "layer/tensor/reshape.h"

#include "layer/cpu/common/packing.h"
#include "layer/cpu/layout/channel_gather.h"
#include "layer/cpu/layout/layouts.h"

namespace quoll {

namespace {

class ReshapeCpu : public Reshape {
public:
    ReshapeCpu() { support_packing = true; }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    // Each item's values stay in it, in their order.
    bool keeps_items(const Shape& from, const Shape& to) const {
        return !permute && (!has_batch_axis() || (from.n == 1 && to.n == 1));
    }
};

void ReshapeCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                              std::vector<BlobLayout>* out) const {
    if (keeps_items(in[0].shape, (*out)[0].shape)) plan_reshaped(in[0], &(*out)[0]);
}

int ReshapeCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    if (!keeps_items(in[0], out[0])) {
        std::vector<Mat> planar = bottoms;
        QUOLL_RETURN_IF_ERROR(with_elempack(bottoms[0], 1, opt, &planar[0]));
        for (size_t i = 1; i < planar.size(); i++) planar[i] = bottoms[i].shape();
        return Reshape::forward(planar, tops, opt);
    }
    tops.resize(1);
    return reshape_channels(bottoms[0], out[0], &tops[0], opt);
}

}  // namespace

Layer* create_Reshape_fast_layer() { return new ReshapeCpu; }

}  // namespace quoll
