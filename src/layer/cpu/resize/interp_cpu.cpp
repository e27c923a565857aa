#include <algorithm>

#include "layer/common/elempack.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/resize/planes.h"
#include "layer/vision/interp.h"

namespace quoll {

namespace {

AxisTaps axis_taps(const std::vector<Interp::Taps>& taps, int count) {
    AxisTaps axis;
    axis.count = count;
    for (const Interp::Taps& t : taps) {
        axis.index.insert(axis.index.end(), t.index, t.index + count);
        axis.factor.insert(axis.factor.end(), t.factor, t.factor + count);
    }
    return axis;
}

class InterpCpu : public Interp {
public:
    InterpCpu() { support_packing = support_fp16_storage = support_bf16_storage = true; }
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
    unsigned traits() const override { return Interp::traits() | kCreatesOutput; }

private:
    const ResizeVariants* variants_ = nullptr;
};

int InterpCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Interp::create_pipeline(opt));
    const ResizeKernels& k = *host_kernel_set().resize;
    variants_ = resize_type == kBicubic ? &k.cubic : &k.linear;
    return kOk;
}

void InterpCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                             std::vector<BlobLayout>* out) const {
    BlobLayout& top = (*out)[0];
    Shape from = in[0].shape, to = top.shape;
    if (unchanged(from, to)) {
        top.elempack = in[0].elempack, top.shares = 0;
    } else if (from.dims == 1) {
        top.shape.dtype = DType::f32;
    } else if (resize_pack_index(in[0].elempack) >= 0) {
        top.elempack = in[0].elempack;
    }
}

int InterpCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    tops.resize(1);
    if (unchanged(in[0], out[0])) {
        tops[0] = bottoms[0];
        return kOk;
    }
    if (in[0].dims == 1) {
        std::vector<Mat> planar = bottoms;
        QUOLL_RETURN_IF_ERROR(widened(planar_view(bottoms[0]), opt, &planar[0]));
        if (planar.size() > 1) planar[1] = bottoms[1].shape();
        return Interp::forward(planar, tops, opt);  // f32, which the Extractor narrows
    }
    const int pack = bottoms[0].elempack;
    Mat src;
    QUOLL_RETURN_IF_ERROR(
        with_elempack(bottoms[0], resize_pack_index(pack) < 0 ? 1 : pack, opt, &src));
    tops[0].create(out[0], src.elempack, opt.blob_allocator);
    if (tops[0].empty()) return kOutOfMemory;
    const int taps = taps_of();
    const AxisTaps xs = axis_taps(column_taps(src.w, tops[0].w), taps);
    AxisTaps ys;
    if (src.dims > 2) ys = axis_taps(row_taps(src.h, tops[0].h), taps);
    if (resize_type != kNearest) return resize_planes(*variants_, src, tops[0], xs, ys, opt);
    pick_planes(src, tops[0], xs, ys, opt);
    return kOk;
}

}  // namespace

Layer* create_Interp_fast_layer() { return new InterpCpu; }

}  // namespace quoll
