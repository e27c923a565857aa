#include "relu.h"

#include "elementwise.h"

namespace quoll {

ReLU::ReLU() : slope(0.f) { set_elementwise(*this); }

void ReLU::params(ReLU& s, ParamVisitor& v) {
    v(0, "slope", s.slope, 0.f, "factor of negative values");
}

void ReLU::weights(ReLU&, WeightVisitor&) {}

int ReLU::shape(const ReLU& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return same_shapes(s, in, out);
}

int ReLU::forward_inplace(Mat& blob, const Option&) const {
    for_each_value(blob, [this](float x) { return x < 0.f ? x * slope : x; });
    return kOk;
}

QUOLL_DEFINE_LAYER(ReLU)

}  // namespace quoll
