#include "deconvolution.h"

namespace quoll {

Deconvolution::Deconvolution() { one_blob_only = true; }

void Deconvolution::params(Deconvolution& s, ParamVisitor& v) { deconvolution_params(s, v); }

void Deconvolution::weights(Deconvolution& s, WeightVisitor& v) {
    conv_weights(s, v, "[num_output][num_input][kernel_h][kernel_w]");
}

int Deconvolution::shape(const Deconvolution& s, const std::vector<Shape>& in,
                         std::vector<Shape>& out) {
    return deconvolution_shape(s, s, in, out);
}

int Deconvolution::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    one_blob_only = !dynamic_weight;
    return check_conv_params(*this, *this);
}

int Deconvolution::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    return check_weight_dtype(*this, weight_data, false);
}

int Deconvolution::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    return deconvolution_forward(*this, *this, std::vector<Mat>(1, bottom_blob), top_blob, opt);
}

int Deconvolution::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                           const Option& opt) const {
    top_blobs.resize(1);
    return deconvolution_forward(*this, *this, bottom_blobs, top_blobs[0], opt);
}

QUOLL_DEFINE_LAYER(Deconvolution)

}  // namespace quoll
