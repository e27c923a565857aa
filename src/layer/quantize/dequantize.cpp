#include "layer/quantize/dequantize.h"

namespace quoll {

Dequantize::Dequantize() {
    one_blob_only = true;
    support_packing = true;
}

void Dequantize::params(Dequantize& s, ParamVisitor& v) {
    v(0, "scale_data_size", s.scale_data_size, 1, "scales: 1, or one a channel", at_least(1));
    v(1, "bias_data_size", s.bias_data_size, 0, "biases: 0, 1, or one a channel", at_least(0));
}

void Dequantize::weights(Dequantize& s, WeightVisitor& v) {
    v(true, "scale_data", s.scale_data, s.scale_data_size, WeightKind::kRaw, "[scale_data_size]");
    v(s.bias_data_size > 0, "bias_data", s.bias_data, s.bias_data_size, WeightKind::kRaw,
      "[bias_data_size]");
}

int Dequantize::shape(const Dequantize& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1 || in[0].dims < 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dtype != DType::s32 && in[0].dtype != DType::f32)
        return s.fail("expected an input of s32, got %s", dtype_name(in[0].dtype));
    QUOLL_RETURN_IF_ERROR(check_factors(s, "scale_data", s.scale_data, in[0]));
    QUOLL_RETURN_IF_ERROR(check_factors(s, "bias_data", s.bias_data, in[0]));
    out = in;
    out[0].dtype = DType::f32;
    return kOk;
}

int Dequantize::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    dequantize_from_int32(bottom, top, factors_for(scale_data, bottom.dims),
                          factors_for(bias_data, bottom.dims), opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

QUOLL_DEFINE_LAYER(Dequantize)

}  // namespace quoll
