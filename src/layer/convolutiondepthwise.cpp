#include "convolutiondepthwise.h"

namespace quoll {

ConvolutionDepthWise::ConvolutionDepthWise() { one_blob_only = true; }

void ConvolutionDepthWise::params(ConvolutionDepthWise& s, ParamVisitor& v) {
    convolution_params(s, v, between(0, 102));
    v(7, "group", s.group, 1, "groups of channels that do not mix", at_least(1));
}

void ConvolutionDepthWise::weights(ConvolutionDepthWise& s, WeightVisitor& v) {
    conv_weights(s, v, "[group][num_output / group][num_input / group][kernel_h][kernel_w]");
    const bool int8 = s.int8_scale_term != 0 && !s.dynamic_weight;
    // 1 and 101: a scale for each group; 2 and 102: one for all.
    const int scales = s.int8_scale_term % 100 == 1 ? s.group : 1;
    v(int8, "weight_data_int8_scales", s.weight_data_int8_scales, scales, WeightKind::kRaw,
      "[group] or [1]");
    v(int8, "bottom_blob_int8_scales", s.bottom_blob_int8_scales, 1, WeightKind::kRaw, "[1]");
    v(int8 && s.int8_output(), "top_blob_int8_scales", s.top_blob_int8_scales, 1, WeightKind::kRaw,
      "[1]");
}

int ConvolutionDepthWise::shape(const ConvolutionDepthWise& s, const std::vector<Shape>& in,
                                std::vector<Shape>& out) {
    return convolution_shape(s, s, in, out);
}

int ConvolutionDepthWise::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    one_blob_only = !dynamic_weight;
    const int term = int8_scale_term % 100;
    if (int8_scale_term != 0 && term != 1 && term != 2)
        return fail("int8_scale_term (8): expected 0, 1, 2, 101 or 102, got %d", int8_scale_term);
    if (dynamic_weight && int8_scale_term)
        return fail("int8_scale_term (8) %d with dynamic_weight (19)", int8_scale_term);
    return check_conv_params(*this, *this);
}

int ConvolutionDepthWise::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    return check_weight_dtype(*this, weight_data, int8_scale_term != 0);
}

int ConvolutionDepthWise::create_pipeline(const Option&) {
    return convolution_create_pipeline(*this, *this);
}

int ConvolutionDepthWise::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    return convolution_forward(*this, *this, std::vector<Mat>(1, bottom_blob), top_blob, opt);
}

int ConvolutionDepthWise::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                                  const Option& opt) const {
    top_blobs.resize(1);
    return convolution_forward(*this, *this, bottom_blobs, top_blobs[0], opt);
}

QUOLL_DEFINE_LAYER(ConvolutionDepthWise)

}  // namespace quoll
