#include "layer/activation/relu.h"

#include "layer/common/elementwise.h"

namespace quoll {

ReLU::ReLU() : slope(0.f) { set_elementwise(*this); }

void ReLU::params(ReLU& s, ParamVisitor& v) {
    v(0, "slope", s.slope, 0.f, "factor of negative values");
}

void ReLU::weights(ReLU&, WeightVisitor&) {}

int ReLU::shape(const ReLU& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() == 1 && in[0].dtype == DType::s8) return same_shapes(s, in, out);
    return same_f32_shapes(s, in, out);
}

int ReLU::forward_inplace(Mat& blob, const Option&) const {
    const auto relu = [this](float x) { return evaluate<activations::Relu>(x, slope); };
    if (blob.dtype == DType::s8)
        for_each_value<signed char>(blob, [&](signed char x) { return float2int8(relu(x)); });
    else if (blob.dtype == DType::f32)
        for_each_value(blob, relu);
    else
        return fail("expected f32 or s8, got %s", dtype_name(blob.dtype));
    return kOk;
}

QUOLL_DEFINE_LAYER(ReLU)

}  // namespace quoll
