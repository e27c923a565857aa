#include "layer/tensor/slice.h"

#include "layer/cpu/layout/channel_gather.h"
#include "layer/cpu/layout/layouts.h"
#include "layer/cpu/layout/shared_copy.h"

namespace quoll {

namespace {

class SliceCpu : public Slice {
public:
    SliceCpu() { support_packing = true; }
    unsigned traits() const override { return Slice::traits() | kPlansBatch; }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int plan(const std::vector<Shape>& in, const Option& opt,
             std::shared_ptr<const LayerPlan>* plan) const override;
    int forward_planned(const LayerPlan&, std::vector<Mat>& bottoms, std::vector<Mat>& tops, bool,
                        const Option& opt) const override {
        return forward_items(*this, bottoms, tops, opt);
    }
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
};

// Not along the channels.
int SliceCpu::plan(const std::vector<Shape>& in, const Option&,
                   std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    if (!in.empty() && axis != 0 && axis + in[0].dims != 0) plan_items(in, plan);
    return kOk;
}

void SliceCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                            std::vector<BlobLayout>* out) const {
    const int dims = in[0].shape.dims, along = axis < 0 ? axis + dims : axis;
    int first = 0;
    for (BlobLayout& top : *out) {
        if (dims == 1) continue;
        const int size = top.shape.size(along);
        const bool shared = along == 0 && shares_channels(in[0], first, size);
        top.elempack = along == 0 && !shared ? pack_within(in[0].elempack, size) : in[0].elempack;
        if (shared) top.shares = 0;
        first += size;
    }
}

int SliceCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const {
    const ShapeList in(bottoms);
    ShapeList out;
    QUOLL_RETURN_IF_ERROR(shape(*this, *in, *out));
    const Mat& bottom = bottoms[0];
    const int dims = bottom.dims, along = axis < 0 ? axis + dims : axis;
    if (dims == 1) return Slice::forward({planar_view(bottom)}, tops, opt);
    tops.resize(out->size());
    const int to[4] = {0, 0, 0, 0};
    for (int i = 0, start = 0; i < (int)out->size(); start += out[i].size(along), i++) {
        const int size = out[i].size(along);
        if (along == 0 && share_channels(bottom, start, size, &tops[i])) continue;
        const int pack = along == 0 ? pack_within(bottom.elempack, size) : bottom.elempack;
        tops[i].create(out[i], pack, opt.blob_allocator);
        if (tops[i].empty()) return kOutOfMemory;
        if (along == 0) {
            Scratch<int> source;
            for (int k = 0; k < size; k++) source->push_back(start + k);
            ChannelGather(bottom, tops[i], *source).copy_all(opt);
        } else {
            Block block = whole_block(tops[i]);
            block.start[axis_of_four(along, dims)] = start;
            copy_block(bottom, block, tops[i], to, opt);
        }
    }
    return kOk;
}

}  // namespace

Layer* create_Slice_fast_layer() { return new SliceCpu; }

}  // namespace quoll
