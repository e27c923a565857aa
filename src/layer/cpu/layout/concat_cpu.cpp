#include "layer/tensor/concat.h"

#include "layer/cpu/common/packing.h"
#include "layer/cpu/layout/channel_gather.h"

namespace quoll {

namespace {

class ConcatCpu : public Concat {
public:
    ConcatCpu() { support_packing = true; }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
    unsigned traits() const override { return Concat::traits() | kCreatesOutput; }

private:
    int along_outermost(const std::vector<Mat>& bottoms, const Shape& out, Mat* top,
                        const Option& opt) const;
    int along_inner(const std::vector<Mat>& bottoms, const Shape& out, int along, Mat* top,
                    const Option& opt) const;
};

// What was made within `top`, where the channels from `first` on are.
bool is_at(const Mat& m, const Mat& top, int first) {
    Mat place;
    return share_channels(top, first, m.logical_shape().size(0), &place) && m.data == place.data &&
           m.elempack == top.elempack && m.cstep == place.cstep;
}

// Every input's channels stay together in elements of the narrowest input's size, so that no
// element of the output has channels of two inputs.
int ConcatCpu::along_outermost(const std::vector<Mat>& bottoms, const Shape& out, Mat* top,
                               const Option& opt) const {
    int pack = 16;
    for (const Mat& m : bottoms)
        pack = pack_within(std::min(pack, m.elempack), m.logical_shape().size(0));
    top->create(out, pack, opt.blob_allocator);
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
        copy_block(same, block, *top, to);
        to[along] += block.size[along];
    }
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
    top.elempack = along == 0 ? 16 : 1;
    for (const BlobLayout& b : in)
        top.elempack = along == 0 ? pack_within(std::min(top.elempack, b.elempack), b.shape.size(0))
                                  : std::max(top.elempack, b.elempack);
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
