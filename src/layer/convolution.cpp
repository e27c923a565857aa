#include "convolution.h"

namespace quoll {

Convolution::Convolution() { one_blob_only = true; }

void Convolution::params(Convolution& s, ParamVisitor& v) { convolution_params(s, v, at_least(0)); }

void Convolution::weights(Convolution& s, WeightVisitor& v) {
    conv_weights(s, v, "[num_output][num_input][kernel_h][kernel_w]");
    const bool int8 = s.int8_scale_term != 0 && !s.dynamic_weight;
    v(int8, "weight_data_int8_scales", s.weight_data_int8_scales, s.num_output, WeightKind::kRaw,
      "[num_output]");
    v(int8, "bottom_blob_int8_scales", s.bottom_blob_int8_scales, 1, WeightKind::kRaw, "[1]");
    v(int8 && s.int8_output(), "top_blob_int8_scales", s.top_blob_int8_scales, 1, WeightKind::kRaw,
      "[1]");
}

int Convolution::shape(const Convolution& s, const std::vector<Shape>& in,
                       std::vector<Shape>& out) {
    return convolution_shape(s, s, in, out);
}

int Convolution::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    one_blob_only = !dynamic_weight;
    if (dynamic_weight && int8_scale_term)
        return fail("int8_scale_term (8) %d with dynamic_weight (19)", int8_scale_term);
    return check_conv_params(*this, *this);
}

int Convolution::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    return check_weight_dtype(*this, weight_data, int8_scale_term != 0);
}

int Convolution::create_pipeline(const Option&) {
    return convolution_create_pipeline(*this, *this);
}

int Convolution::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    return convolution_forward(*this, *this, std::vector<Mat>(1, bottom_blob), top_blob, opt);
}

int Convolution::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                         const Option& opt) const {
    top_blobs.resize(1);
    return convolution_forward(*this, *this, bottom_blobs, top_blobs[0], opt);
}

QUOLL_DEFINE_LAYER(Convolution)

}  // namespace quoll
