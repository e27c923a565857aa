#include "layer/cpu/conv/conv_layer.h"

namespace quoll {

ConvolutionCpu::ConvolutionCpu(int axes) : ConvolutionOperator(axes, false) {
    support_packing = true;
}

int ConvolutionCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(ConvolutionOperator::create_pipeline(opt));
    if (dynamic_weight) return kOk;
    if (int8_scale_term != 0) return int8_.create(*this, new ConvolutionCpu(axes), opt);
    QUOLL_RETURN_IF_ERROR(runner_.create(*this, *this, opt));
    support_bf16_storage = opt.use_bf16_storage;
    weight_data.release();
    return kOk;
}

int ConvolutionCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    if (int8_.created()) return int8_.forward(*this, bottom_blob, top_blob, opt);
    if (!runner_.created()) {
        std::vector<Mat> tops(1);
        QUOLL_RETURN_IF_ERROR(forward(std::vector<Mat>(1, bottom_blob), tops, opt));
        top_blob = tops[0];
        return kOk;
    }
    const std::vector<Shape> in(1, bottom_blob.logical_shape());
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, in, &g));
    if (is_flat_input(*this, in[0]))
        return bottom_blob.dtype == DType::bf16
                   ? runner_.forward_widened(*this, g, bottom_blob, top_blob, opt)
                   : runner_.forward_flat(bottom_blob, top_blob, opt);
    return runner_.forward(*this, g, bottom_blob, top_blob, opt);
}

int ConvolutionCpu::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                            const Option& opt) const {
    top_blobs.resize(1);
    if (runner_.created() && bottom_blobs.size() == 1)
        return forward(bottom_blobs[0], top_blobs[0], opt);
    std::vector<Mat> planar;
    QUOLL_RETURN_IF_ERROR(all_planar(bottom_blobs, opt, &planar));
    return ConvolutionOperator::forward(planar, top_blobs, opt);
}

}  // namespace quoll
