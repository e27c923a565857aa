#include "layer/elementwise/dropout.h"

namespace quoll {

Dropout::Dropout() : scale(1.f) {}

void Dropout::params(Dropout& s, ParamVisitor& v) { v(0, "scale", s.scale, 1.f, "factor"); }

int Dropout::shape(const Dropout& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return s.scale == 1.f ? same_shapes(s, in, out) : same_f32_shapes(s, in, out);
}

int Dropout::forward_inplace(Mat& blob, const Option& opt) const {
    return scale == 1.f ? (int)kOk : ElementwiseOperator<Dropout>::forward_inplace(blob, opt);
}

QUOLL_DEFINE_LAYER(Dropout)

}  // namespace quoll
