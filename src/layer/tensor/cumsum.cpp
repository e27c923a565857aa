#include "layer/tensor/cumsum.h"

#include "layer/common/axis_lines.h"
#include "layer/common/integer.h"

namespace quoll {

void CumSum::params(CumSum& s, ParamVisitor& v) {
    declare_axis(v, s.axis, 0);
    v(1, "exclusive", s.exclusive, 0, "1: sums without the value itself", between(0, 1));
    v(2, "reverse", s.reverse, 0, "1: sums from the end on", between(0, 1));
}

int CumSum::shape(const CumSum& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 2));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    out.assign(1, in[0]);
    if (in.size() == 2) {
        if (in[1].total() != 1)
            return s.fail("axis: expected one value, got %s", shape_text(in[1]).c_str());
        return expect_dtype(s, "axis", in[1].dtype, DType::s32);
    }
    int axis;
    return resolve_axis(s, s.axis, in[0].dims, &axis);
}

// Floats are added up in double.
static double long_sum(float) { return 0; }
template <class T>
static T long_sum(T) {
    return 0;
}
static double wrapping_add(double x, double y) { return x + y; }

int CumSum::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    int along = axis;
    if (bottoms.size() == 2)
        QUOLL_RETURN_IF_ERROR(
            resolve_axis(*this, *(const int32_t*)bottoms[1].data, m.dims, &along));
    with_number(m.dtype, [&](auto number) {
        using T = decltype(number);
        for_each_line<T>(m, tops[0], along, [&](const T* from, T* to, int size, size_t step) {
            auto sum = long_sum(T());
            for (int i = 0; i < size; i++) {
                const size_t at = (reverse ? size - 1 - i : i) * step;
                const auto before = sum;
                sum = wrapping_add(sum, (decltype(sum))from[at]);
                to[at] = (T)(exclusive ? before : sum);
            }
        });
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(CumSum)

}  // namespace quoll
