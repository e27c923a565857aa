#include "layer/quantize/quantize.h"

namespace quoll {

Quantize::Quantize() {
    one_blob_only = true;
    support_packing = true;
}

void Quantize::params(Quantize& s, ParamVisitor& v) {
    v(0, "scale_data_size", s.scale_data_size, 1, "scales: 1, or one a channel", at_least(1));
}

void Quantize::weights(Quantize& s, WeightVisitor& v) {
    v(true, "scale_data", s.scale_data, s.scale_data_size, WeightKind::kRaw, "[scale_data_size]");
}

int Quantize::shape(const Quantize& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1 || in[0].dims < 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dtype != DType::f32)
        return s.fail("expected an input of f32, got %s", dtype_name(in[0].dtype));
    QUOLL_RETURN_IF_ERROR(check_factors(s, "scale_data", s.scale_data, in[0]));
    out = in;
    out[0].dtype = DType::s8;
    return kOk;
}

int Quantize::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    quantize_to_int8(bottom, top, factors_for(scale_data, bottom.dims), opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

QUOLL_DEFINE_LAYER(Quantize)

}  // namespace quoll
