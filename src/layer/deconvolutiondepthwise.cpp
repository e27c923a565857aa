#include "deconvolutiondepthwise.h"

namespace quoll {

DeconvolutionDepthWise::DeconvolutionDepthWise() { one_blob_only = true; }

void DeconvolutionDepthWise::params(DeconvolutionDepthWise& s, ParamVisitor& v) {
    deconvolution_params(s, v);
    v(7, "group", s.group, 1, "groups of channels that do not mix", at_least(1));
}

void DeconvolutionDepthWise::weights(DeconvolutionDepthWise& s, WeightVisitor& v) {
    conv_weights(s, v, "[group][num_output / group][num_input / group][kernel_h][kernel_w]");
}

int DeconvolutionDepthWise::shape(const DeconvolutionDepthWise& s, const std::vector<Shape>& in,
                                  std::vector<Shape>& out) {
    return deconvolution_shape(s, s, in, out);
}

int DeconvolutionDepthWise::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    one_blob_only = !dynamic_weight;
    return check_conv_params(*this, *this);
}

int DeconvolutionDepthWise::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    return check_weight_dtype(*this, weight_data, false);
}

int DeconvolutionDepthWise::forward(const Mat& bottom_blob, Mat& top_blob,
                                    const Option& opt) const {
    return deconvolution_forward(*this, *this, std::vector<Mat>(1, bottom_blob), top_blob, opt);
}

int DeconvolutionDepthWise::forward(const std::vector<Mat>& bottom_blobs,
                                    std::vector<Mat>& top_blobs, const Option& opt) const {
    top_blobs.resize(1);
    return deconvolution_forward(*this, *this, bottom_blobs, top_blobs[0], opt);
}

QUOLL_DEFINE_LAYER(DeconvolutionDepthWise)

}  // namespace quoll
