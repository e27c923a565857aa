#include "layer/tensor/concat.h"

#include "layer/cpu/layout/channel_gather.h"
#include "layer/cpu/layout/layouts.h"
#include "layer/cpu/layout/shared_copy.h"

namespace quoll {

namespace {

class ConcatCpu : public Concat {
public:
    ConcatCpu() { support_packing = true; }
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
    unsigned traits() const override { return Concat::traits() | kCreatesOutput | kPlansBatch; }

private:
    int along_outermost(const std::vector<Mat>& bottoms, const Shape& out, Mat* top,
                        const Option& opt) const;
    int along_inner(const std::vector<Mat>& bottoms, const Shape& out, int along, Mat* top,
                    const Option& opt) const;
};

// How the channels of inputs that are joined along the outermost axis lie: in elements as wide as
// those that half of the values or more come in, so that no element has channels of two inputs.
class JoinedPack {
public:
    void add(int elempack, const Shape& in) {
        const double values = (double)in.total();
        all_ += values;
        for (int i = 0; i < kWidths; i++) {
            if (elempack >= 1 << i) values_[i] += values;
            whole_[i] = whole_[i] && in.size(0) % (1 << i) == 0;
        }
    }
    int get() const {
        int pack = 1;
        for (int i = 1; i < kWidths; i++)
            if (whole_[i] && 2 * values_[i] >= all_) pack = 1 << i;
        return pack;
    }

private:
    enum { kWidths = 5 };  // 1 to 16
    double all_ = 0, values_[kWidths] = {};
    bool whole_[kWidths] = {true, true, true, true, true};
};

// What was made within `top`, where the channels from `first` on are.
bool is_at(const Mat& m, const Mat& top, int first) {
    Mat place;
    return share_channels(top, first, m.logical_shape().size(0), &place) && m.data == place.data &&
           m.elempack == top.elempack && m.cstep == place.cstep;
}

int ConcatCpu::along_outermost(const std::vector<Mat>& bottoms, const Shape& out, Mat* top,
                               const Option& opt) const {
    JoinedPack pack;
    for (const Mat& m : bottoms) pack.add(m.elempack, m.logical_shape());
    top->create(out, pack.get(), opt.blob_allocator);
    if (top->empty()) return kOutOfMemory;
    int first = 0;
    for (const Mat& m : bottoms) {
        const int count = m.logical_shape().size(0);
        if (!is_at(m, *top, first)) copy_channels(m, *top, first, opt);
        first += count;
    }
    return kOk;
}

int ConcatCpu::along_inner(const std::vector<Mat>& bottoms, const Shape& out, int along, Mat* top,
                           const Option& opt) const {
    int pack = 1, to[4] = {0, 0, 0, 0};
    for (const Mat& m : bottoms) pack = std::max(pack, m.elempack);
    top->create(out, pack, opt.blob_allocator);
    if (top->empty()) return kOutOfMemory;
    for (const Mat& m : bottoms) {
        Mat same;
        QUOLL_RETURN_IF_ERROR(with_elempack(m, pack, opt, &same));
        const Block block = whole_block(same);
        copy_block(same, block, *top, to, opt);
        to[along] += block.size[along];
    }
    return kOk;
}

// Not along the channels.
int ConcatCpu::plan(const std::vector<Shape>& in, const Option&,
                    std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    if (!in.empty() && axis != 0 && axis + in[0].dims != 0) plan_items(in, plan);
    return kOk;
}

void ConcatCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                             std::vector<BlobLayout>* out) const {
    BlobLayout& top = (*out)[0];
    if (in.size() == 1) {
        top.elempack = in[0].elempack, top.shares = 0;
        return;
    }
    const int dims = top.shape.dims, along = axis < 0 ? axis + dims : axis;
    if (dims == 1) return;
    JoinedPack pack;
    for (const BlobLayout& b : in) {
        pack.add(b.elempack, b.shape);
        top.elempack = std::max(top.elempack, b.elempack);
    }
    if (along == 0) top.elempack = pack.get();
}

int ConcatCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    int status = kOk;
    if (join_others(bottoms, tops, opt, &status)) return status;
    const ShapeList in(bottoms);
    ShapeList out;
    QUOLL_RETURN_IF_ERROR(shape(*this, *in, *out));
    tops.resize(1);
    const int dims = out[0].dims, along = axis < 0 ? axis + dims : axis;
    if (bottoms.size() == 1) {
        tops[0] = bottoms[0];
        return kOk;
    }
    if (dims == 1) {
        std::vector<Mat> planar;
        for (const Mat& m : bottoms) planar.push_back(planar_view(m));
        return Concat::forward(planar, tops, opt);
    }
    return along == 0 ? along_outermost(bottoms, out[0], &tops[0], opt)
                      : along_inner(bottoms, out[0], axis_of_four(along, dims), &tops[0], opt);
}

}  // namespace

Layer* create_Concat_fast_layer() { return new ConcatCpu; }

}  // namespace quoll
