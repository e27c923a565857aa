#include "layer/cpu/conv/conv_layer.h"

#include "layer/cpu/cast/storage.h"
#include "layer/scratch.h"

namespace quoll {

ConvolutionCpu::ConvolutionCpu(int axes) : Convolution(axes, false) { support_packing = true; }

int ConvolutionCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Convolution::create_pipeline(opt));
    if (dynamic_weight) return kOk;
    if (int8_scale_term != 0) {
        weight_data.release();  // weight_data_int8 is what all forms take
        QUOLL_RETURN_IF_ERROR(int8_.create(*this, *this, opt));
        support_inplace = add_input != 0 && int8_.created();
        return kOk;
    }
    QUOLL_RETURN_IF_ERROR(runner_.create(*this, *this, opt));
    support_bf16_storage = opt.use_bf16_storage;
    support_inplace = add_input != 0;
    weight_data.release();
    return kOk;
}

int ConvolutionCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    if (int8_.created() && !add_input) return forward_int8(bottom_blob, Mat(), &top_blob, opt);
    if (!runner_.created()) {
        std::vector<Mat> tops(1);
        QUOLL_RETURN_IF_ERROR(forward(std::vector<Mat>(1, bottom_blob), tops, opt));
        top_blob = tops[0];
        return kOk;
    }
    const ShapeList in(bottom_blob);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    if (is_flat_input(*this, in[0]))
        return bottom_blob.dtype == DType::bf16
                   ? runner_.forward_widened(*this, g, bottom_blob, Mat(), top_blob, opt)
                   : runner_.forward_flat(*this, bottom_blob, top_blob, opt);
    return runner_.forward(*this, g, bottom_blob, Mat(), top_blob, opt);
}

int ConvolutionCpu::forward_inplace(std::vector<Mat>& blobs, const Option& opt) const {
    if (!add_input || blobs.size() != 2) return fail("expected 2 inputs, got %zu", blobs.size());
    Mat top = blobs[1];
    QUOLL_RETURN_IF_ERROR(forward_with_add(blobs[0], blobs[1], &top, opt));
    blobs.assign(1, top);
    return kOk;
}

// added: empty, or what comes with add_input.
int ConvolutionCpu::forward_int8(const Mat& bottom, const Mat& added, Mat* top,
                                 const Option& opt) const {
    ShapeList in(bottom);
    if (add_input) in->push_back(added.logical_shape());
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    Option temporary = opt;
    if (add_input) temporary.blob_allocator = opt.workspace_allocator;
    Mat sums;
    int status;
    if (!add_input) {
        status = int8_.forward(*this, g, bottom, Mat(), *top, opt);
    } else if (!is_flat_input(*this, in[0]) && in[1] == conv_output_shape(*this, g, DType::f32)) {
        status = int8_.forward(*this, g, bottom, added, *top, opt);
    } else {
        status = int8_.forward(*this, g, bottom, Mat(), sums, temporary);
        if (status == kOk) return add_and_activate(*this, *this, sums, added, true, top, opt);
    }
    if (status != Int8Conv::kUnsuitable) return status;
    std::vector<Mat> planar, tops;
    std::vector<Mat> blobs(1, bottom);
    if (add_input) blobs.push_back(added);
    QUOLL_RETURN_IF_ERROR(all_planar(blobs, opt, &planar));
    QUOLL_RETURN_IF_ERROR(Convolution::forward(planar, tops, opt));
    *top = tops[0];
    return kOk;
}

// Only what has the output's shape is added where the sums are made.
int ConvolutionCpu::forward_with_add(const Mat& bottom, const Mat& added, Mat* top,
                                     const Option& opt) const {
    if (int8_.created()) return forward_int8(bottom, added, top, opt);
    const Shape in = bottom.logical_shape(), shape = added.logical_shape();
    ConvGeometry g;
    ShapeList both(bottom);
    both->push_back(shape);
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *both, &g));
    const bool flat = is_flat_input(*this, in);
    if (!flat && shape == conv_output_shape(*this, g, in.dtype))
        return runner_.forward(*this, g, bottom, added, *top, opt);
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    temporary.use_bf16_storage = false;
    Mat wide, wide_added, sums;
    QUOLL_RETURN_IF_ERROR(widened(bottom, temporary, &wide));
    QUOLL_RETURN_IF_ERROR(widened(added, temporary, &wide_added));
    QUOLL_RETURN_IF_ERROR(flat ? runner_.forward_flat(*this, wide, sums, temporary)
                               : runner_.forward(*this, g, wide, Mat(), sums, temporary));
    if (bottom.dtype != DType::bf16)
        return add_and_activate(*this, *this, sums, wide_added, true, top, opt);
    QUOLL_RETURN_IF_ERROR(add_and_activate(*this, *this, sums, wide_added, true, &wide, temporary));
    cast_float32_to_bfloat16(wide, *top, opt);
    return top->empty() ? (int)kOutOfMemory : (int)kOk;
}

int ConvolutionCpu::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                            const Option& opt) const {
    top_blobs.resize(1);
    const bool fast = runner_.created() || int8_.created();
    if (fast && add_input && bottom_blobs.size() == 2)
        return forward_with_add(bottom_blobs[0], bottom_blobs[1], &top_blobs[0], opt);
    if (fast && !add_input && bottom_blobs.size() == 1)
        return forward(bottom_blobs[0], top_blobs[0], opt);
    std::vector<Mat> planar;
    QUOLL_RETURN_IF_ERROR(all_planar(bottom_blobs, opt, &planar));
    return Convolution::forward(planar, top_blobs, opt);
}

}  // namespace quoll
