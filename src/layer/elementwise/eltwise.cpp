#include "layer/elementwise/eltwise.h"

#include "layer/common/extremes.h"

namespace quoll {

Eltwise::Eltwise() {}

void Eltwise::params(Eltwise& s, ParamVisitor& v) {
    v(0, "op_type", s.op_type, 0, "0: product, 1: sum, 2: maximum", between(0, 2));
    v.floats(1, "coeffs", s.coeffs, "factors of the inputs of a sum");
}

void Eltwise::weights(Eltwise&, WeightVisitor&) {}

int Eltwise::shape(const Eltwise& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.empty()) return s.fail("expected at least 1 input, got 0");
    for (const Shape& shape : in)
        if (shape != in[0] || !accepts_float(s, shape.dtype))
            return s.fail("expected f32 inputs of %s, got %s of %s", shape_text(in[0]).c_str(),
                          dtype_name(shape.dtype), shape_text(shape).c_str());
    if (s.op_type == SUM && !s.coeffs.empty() && (size_t)s.coeffs.w != in.size())
        return s.fail("%d coeffs for %zu inputs", s.coeffs.w, in.size());
    out.assign(1, in[0]);
    return kOk;
}

int Eltwise::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    Mat& top = tops[0];
    const bool weighted = op_type == SUM && !coeffs.empty();
    const size_t count = (size_t)top.w * top.h * top.d;
    for (int q = 0; q < top.c; q++) {
        float* y = (float*)top.data + q * top.cstep;
        for (size_t i = 0; i < bottoms.size(); i++) {
            const float* x = (const float*)bottoms[i].data + q * bottoms[i].cstep;
            const float factor = weighted ? coeffs[i] : 1.f;
            for (size_t k = 0; k < count; k++) {
                const float v = weighted ? x[k] * factor : x[k];
                y[k] = i == 0            ? v
                       : op_type == PROD ? y[k] * v
                       : op_type == SUM  ? y[k] + v
                                         : maximum(y[k], v);
            }
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Eltwise)

}  // namespace quoll
