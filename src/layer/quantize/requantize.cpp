#include "layer/quantize/requantize.h"

#include "layer/common/activation.h"

namespace quoll {

Requantize::Requantize() {
    one_blob_only = true;
    support_packing = true;
}

void Requantize::params(Requantize& s, ParamVisitor& v) {
    v(0, "scale_in_data_size", s.scale_in_data_size, 1, "scales: 1, or one a channel", at_least(1));
    v(1, "scale_out_data_size", s.scale_out_data_size, 1, "scales: 1, or one a channel",
      at_least(1));
    v(2, "bias_data_size", s.bias_data_size, 0, "biases: 0, 1, or one a channel", at_least(0));
    v(3, "activation_type", s.activation_type, 0, "as Convolution's", between(0, 6));
    v.floats(4, "activation_params", s.activation_params, "as Convolution's");
}

void Requantize::weights(Requantize& s, WeightVisitor& v) {
    v(true, "scale_in_data", s.scale_in_data, s.scale_in_data_size, WeightKind::kRaw,
      "[scale_in_data_size]");
    v(true, "scale_out_data", s.scale_out_data, s.scale_out_data_size, WeightKind::kRaw,
      "[scale_out_data_size]");
    v(s.bias_data_size > 0, "bias_data", s.bias_data, s.bias_data_size, WeightKind::kRaw,
      "[bias_data_size]");
}

int Requantize::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    return check_activation(*this, activation_type, activation_params);
}

int Requantize::shape(const Requantize& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1 || in[0].dims < 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dtype != DType::s32 && in[0].dtype != DType::f32)
        return s.fail("expected an input of s32, got %s", dtype_name(in[0].dtype));
    QUOLL_RETURN_IF_ERROR(check_factors(s, "scale_in_data", s.scale_in_data, in[0]));
    QUOLL_RETURN_IF_ERROR(check_factors(s, "scale_out_data", s.scale_out_data, in[0]));
    QUOLL_RETURN_IF_ERROR(check_factors(s, "bias_data", s.bias_data, in[0]));
    out = in;
    out[0].dtype = DType::s8;
    return kOk;
}

int Requantize::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    Mat floats;
    dequantize_from_int32(bottom, floats, factors_for(scale_in_data, bottom.dims),
                          factors_for(bias_data, bottom.dims), opt);
    if (floats.empty()) return kOutOfMemory;
    const Activation activation(activation_type, activation_params);
    for (int b = 0; b < floats.n; b++) {
        for (int q = 0; q < floats.c; q++) {
            float* x = (float*)floats.batch(b).channel(q).data;
            const size_t count = (size_t)floats.w * floats.h * floats.d * floats.elempack;
            for (size_t i = 0; i < count; i++) x[i] = activate(x[i], activation);
        }
    }
    quantize_to_int8(floats, top, factors_for(scale_out_data, bottom.dims), opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

QUOLL_DEFINE_LAYER(Requantize)

}  // namespace quoll
