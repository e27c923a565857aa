#include "layer/cpu/dwconv/dwconv_layer.h"

#include "layer/common/scratch.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/layout/channel_gather.h"

namespace quoll {

ConvolutionDepthWiseCpu::ConvolutionDepthWiseCpu(int axes)
    : Convolution(axes, true), kernels_(nullptr), pack_(0), pair_(1), row_(nullptr), width_(1) {
    support_packing = true;
}

int ConvolutionDepthWiseCpu::forward_reference(const Mat& bottom, Mat& top,
                                               const Option& opt) const {
    Mat wide, planar, made;
    QUOLL_RETURN_IF_ERROR(widened(bottom, opt, &wide));
    QUOLL_RETURN_IF_ERROR(with_elempack(wide, 1, opt, &planar));
    if (!kHasHalfStorage || wide.dtype == bottom.dtype)
        return Convolution::forward(planar, top, opt);
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    QUOLL_RETURN_IF_ERROR(Convolution::forward(planar, made, temporary));
    if (bottom.dtype == DType::f16)
        cast_float32_to_float16(made, top, opt);
    else
        cast_float32_to_bfloat16(made, top, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

// On the reference, for windows that the kernels do not suit; with the elempack that these make.
int ConvolutionDepthWiseCpu::forward_repacked(const Mat& bottom, int pack, Mat& top,
                                              const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(forward_reference(bottom, top, opt));
    const Mat planar = top;
    convert_packing(planar, top, pack, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

int ConvolutionDepthWiseCpu::forward(const std::vector<Mat>& bottom_blobs,
                                     std::vector<Mat>& top_blobs, const Option& opt) const {
    if (bottom_blobs.size() == 1 && !dynamic_weight) {
        top_blobs.resize(1);
        return forward(bottom_blobs[0], top_blobs[0], opt);
    }
    std::vector<Mat> planar;
    QUOLL_RETURN_IF_ERROR(all_planar(bottom_blobs, opt, &planar));
    return Convolution::forward(planar, top_blobs, opt);
}

int ConvolutionDepthWiseCpu::make_plan(const std::vector<Shape>& bottoms, const Option& opt,
                                       ConvolutionPlan* p) const {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, bottoms, &g));
    if (int8_groups_.created()) {
        p->int8 = int8_groups_.plan(*this, g, bottoms[0], opt);
        p->name = int8_groups_.kernels(p->int8.get());
        return kOk;
    }
    if (on_tiles(bottoms[0])) {
        p->name = algorithm_name(ConvAlgorithm::kSplit);
        return kOk;
    }
    QUOLL_RETURN_IF_ERROR(
        is_flat_input(*this, bottoms[0])
            ? groups_.plan_flat(&p->f32)
            : groups_.plan(*this, *this, g, bottoms[0].dtype, false, opt, &p->f32));
    p->name = algorithm_name(p->f32.algorithm);
    return kOk;
}

int ConvolutionDepthWiseCpu::plan(const std::vector<Shape>& bottoms, const Option& opt,
                                  std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    if (bottoms.size() != 1 || !(groups_.created() || int8_groups_.created())) return kOk;
    const std::shared_ptr<ConvolutionPlan> made = std::make_shared<ConvolutionPlan>();
    QUOLL_RETURN_IF_ERROR(make_plan(bottoms, opt, made.get()));
    *plan = made;
    return kOk;
}

int ConvolutionDepthWiseCpu::forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms,
                                             std::vector<Mat>& tops, bool,
                                             const Option& opt) const {
    tops.resize(1);
    return forward_groups(static_cast<const ConvolutionPlan&>(plan), bottoms[0], tops[0], opt);
}

// Groups that are matrix products.
int ConvolutionDepthWiseCpu::forward_groups(const ConvolutionPlan& p, const Mat& bottom, Mat& top,
                                            const Option& opt) const {
    const ShapeList in(bottom);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    if (int8_groups_.created()) {
        const int status = int8_groups_.forward(p.int8.get(), *this, g, bottom, Mat(), top, opt);
        return status == Int8Conv::kUnsuitable ? forward_reference(bottom, top, opt) : status;
    }
    if (on_tiles(in[0])) return tile_groups_.forward(*this, g, bottom, top, opt);
    if (!is_flat_input(*this, in[0]))
        return groups_.forward(p.f32, *this, g, bottom, Mat(), top, opt);
    return kHasHalfStorage && bottom.dtype == DType::bf16
               ? groups_.forward_widened(p.f32, *this, g, true, bottom, Mat(), top, opt)
               : groups_.forward_flat(p.f32, *this, bottom, top, opt);
}

// As repeated_ takes them.
int ConvolutionDepthWiseCpu::repeat_channels(const Mat& bottom, const Option& opt,
                                             Mat* repeated) const {
    if (kFewKernels) return kError;  // nor does the library hold what moves channels
    Shape shape = bottom.logical_shape();
    shape.set_size(0, num_output);
    const int pack = shape.dims == 1 ? 1 : std::max(1, repeated_->pack_ * repeated_->pair_);
    repeated->create(shape, pack, opt.workspace_allocator);
    if (repeated->empty()) return kOutOfMemory;
    copy_repeated(bottom, *repeated, num_output / group, opt);
    return kOk;
}

int ConvolutionDepthWiseCpu::forward(const Mat& bottom_blob, Mat& top_blob,
                                     const Option& opt) const {
    const ShapeList in(bottom_blob);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    if (!kFewKernels && repeated_) {
        Mat repeated;
        QUOLL_RETURN_IF_ERROR(repeat_channels(bottom_blob, opt, &repeated));
        return repeated_->forward(repeated, top_blob, opt);
    }
    if (int8_groups_.created() || groups_.created()) {
        ConvolutionPlan p;
        QUOLL_RETURN_IF_ERROR(make_plan(*in, opt, &p));
        return forward_groups(p, bottom_blob, top_blob, opt);
    }
    const bool flat = is_flat_input(*this, in[0]);
    if (int8_.created() && !flat) {
        const int status = int8_.forward(*this, g, bottom_blob, top_blob, opt);
        return status == Int8Depthwise::kUnsuitable
                   ? forward_repacked(bottom_blob, int8_.out_pack(num_output), top_blob, opt)
                   : status;
    }
    if (pack_ == 0 || flat) return forward_reference(bottom_blob, top_blob, opt);
    const int status = forward_float(bottom_blob, g, top_blob, opt);
    return status == kUnsuitable ? forward_repacked(bottom_blob, pack_, top_blob, opt) : status;
}

void ConvolutionDepthWiseCpu::plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in,
                                           const Option& opt, std::vector<BlobLayout>* out) const {
    if (dynamic_weight || in.size() != 1) return;
    if (!kFewKernels && repeated_) {
        BlobLayout repeated = in[0];
        repeated.shape.set_size(0, num_output);
        repeated.elempack = 1;
        return repeated_->plan_layouts(nullptr, {repeated}, opt, out);
    }
    int& pack = (*out)[0].elempack;
    const bool flat = is_flat_input(*this, in[0].shape);
    ConvGeometry g;
    const bool fits = convolution_geometry(*this, *this, {in[0].shape}, &g) == kOk;
    if (groups_.created()) {
        if (plan && !flat && fits) {
            const ConvRunPlan& p = static_cast<const ConvolutionPlan*>(plan)->f32;
            (*out)[0].shape.dtype = groups_.made_type(p, *this, g, in[0].shape.dtype, opt);
        }
        pack = flat ? groups_.flat_out_pack() : groups_.out_pack();
        if (groups_.takes_f16()) (*out)[0].shape.dtype = DType::f16;
        return;
    }
    if (int8_groups_.created())
        pack = int8_groups_.out_pack();
    else if (int8_.created() && !flat)
        pack = int8_.out_pack(num_output);
    else if (pack_ != 0 && !flat)
        pack = pack_ * pair_;
    // Kernels of planar half floats also take a net's inputs, which are converted to f16.
    const bool half = pair_ == 2 || (!planar_weight_.empty() && fits && planar_kernel(g));
    if (half && !flat) (*out)[0].shape.dtype = DType::f16;
}

int ConvolutionDepthWiseCpu::forward_float(const Mat& bottom, const ConvGeometry& g, Mat& top,
                                           const Option& opt) const {
    if (has_slices()) return forward_slices(bottom, g, top, opt);
    if (kHasHalfStorage && pair_ == 2) return forward_f16(bottom, g, top, opt);
    if (const DwconvPlanarKernel kernel = planar_kernel(g))
        return forward_planar(kernel, bottom, g, top, opt);
    return few_channels() ? forward_few_channels(bottom, g, top, opt)
                          : forward_blocked(bottom, g, top, opt);
}

}  // namespace quoll
