#include <algorithm>

#include "layer/common/elempack.h"
#include "layer/common/scratch.h"
#include "layer/common/stored.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/resize/planes.h"
#include "layer/vision/resize.h"

namespace quoll {

namespace {

// Resampling along w and h, of which blobs of two axes have w alone, for one, two or four taps; the
// rest is the reference's.
class ResizeCpu : public Resize {
public:
    ResizeCpu() { support_packing = support_fp16_storage = support_bf16_storage = true; }
    // Scales and roi that are inputs are floats, and all inputs would come in 16 bits.
    int create_pipeline(const Option& opt) override {
        support_fp16_storage = support_bf16_storage = inputs == 0;
        return Resize::create_pipeline(opt);
    }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
    unsigned traits() const override { return Resize::traits() | kCreatesOutput; }

private:
    bool is_fast(const Shape& shape, int elempack, const std::vector<AxisPlan>& plans,
                 const Shape& out) const;
    int taps_of(const AxisPlan& axis, AxisTaps* taps) const;
    int forward_plain(std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt) const;
};

int ResizeCpu::taps_of(const AxisPlan& axis, AxisTaps* taps) const {
    *taps = AxisTaps();
    if (axis.identity()) return kOk;
    Taps made;
    QUOLL_RETURN_IF_ERROR(make_taps(axis, &made));
    taps->count = made.count;
    taps->index.swap(made.at);
    taps->factor.swap(made.weight);
    return kOk;
}

// On the kernels.
bool ResizeCpu::is_fast(const Shape& shape, int elempack, const std::vector<AxisPlan>& plans,
                        const Shape& out) const {
    const int dims = shape.dims, planes = dims == 2 ? 1 : 2;
    bool fast = out.total() > 0 && dims >= 2 && resize_pack_index(elempack) >= 0 &&
                transform != kTfCropAndResize;
    for (int i = 0; i < dims; i++) {
        const int taps = i < dims - planes ? 0 : kernel_taps(plans[i]);
        fast = fast && (plans[i].identity() || taps == 1 || taps == 2 || taps == 4);
        // An antialiased axis may have other taps than the other.
        if (i > std::max(0, dims - planes) && !plans[i].identity() && !plans[i - 1].identity())
            fast = fast && taps == kernel_taps(plans[i - 1]);
    }
    return fast;
}

// If parameters give the size.
void ResizeCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                             std::vector<BlobLayout>* out) const {
    const Shape& shape = in[0].shape;
    std::vector<AxisPlan> plans;
    Shape to;
    if (in.size() > 1 || plan(shape, lists(std::vector<Mat>(1)), &plans, &to) != kOk) return;
    if (!is_fast(shape, in[0].elempack, plans, to)) return;
    (*out)[0].elempack = in[0].elempack;
    if (to == shape) (*out)[0].shares = 0;
}

// The reference, which knows planar floats.
int ResizeCpu::forward_plain(std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                             const Option& opt) const {
    Mat& m = bottoms[0];
    const DType type = m.dtype;
    QUOLL_RETURN_IF_ERROR(with_elempack(m, 1, opt, &m));
    if (type != DType::f16 && type != DType::bf16) return Resize::forward(bottoms, tops, opt);
    QUOLL_RETURN_IF_ERROR(widened(m, opt, &m));
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    std::vector<Mat> floats(1);
    QUOLL_RETURN_IF_ERROR(Resize::forward(bottoms, floats, temporary));
    narrow(floats[0], type, &tops[0], opt);
    return tops[0].empty() ? (int)kOutOfMemory : (int)kOk;
}

int ResizeCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    const ShapeList in(bottoms);
    ShapeList inferred;
    QUOLL_RETURN_IF_ERROR(infer_shapes(*in, *inferred));
    std::vector<Mat> planar = bottoms;
    for (size_t i = 0; i < bottoms.size(); i++)
        if (i > 0 || bottoms[i].dims == 1) planar[i] = planar_view(bottoms[i]);
    Mat& m = planar[0];
    const Shape shape = m.logical_shape();
    tops.resize(1);
    std::vector<AxisPlan> plans;
    Shape out;
    QUOLL_RETURN_IF_ERROR(plan(shape, lists(planar), &plans, &out));
    const int dims = shape.dims;
    const bool fast = is_fast(shape, m.elempack, plans, out);
    if (out.total() == 0) return create_tensor(out, &tops[0], opt);
    if (!fast) return forward_plain(planar, tops, opt);
    AxisTaps xs, ys;
    QUOLL_RETURN_IF_ERROR(taps_of(plans[dims - 1], &xs));
    if (dims > 2) QUOLL_RETURN_IF_ERROR(taps_of(plans[dims - 2], &ys));
    if (xs.none() && ys.none()) {
        tops[0] = m;
        return kOk;
    }
    tops[0].create(out, m.elempack, opt.blob_allocator);
    if (tops[0].empty()) return kOutOfMemory;
    if (mode == kNearest) {
        pick_planes(m, tops[0], xs, ys, opt);
        return kOk;
    }
    const ResizeKernels& kernels = *host_kernel_set().resize;
    const bool two = std::max(xs.count, ys.count) == 2;
    return resize_planes(two ? kernels.linear : kernels.cubic, m, tops[0], xs, ys, opt);
}

}  // namespace

Layer* create_Resize_fast_layer() { return new ResizeCpu; }

}  // namespace quoll
