#include "layer/tensor/concat.h"

#include <limits.h>

#include <algorithm>

#include "layer/common/blocks.h"
#include "layer/common/tensor.h"

namespace quoll {

Concat::Concat() { support_fp16_storage = support_bf16_storage = support_zero_size = true; }

void Concat::params(Concat& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "axis, 0: outermost, -1: innermost", between(-4, 3));
}

void Concat::weights(Concat&, WeightVisitor&) {}

int Concat::shape(const Concat& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.empty()) return s.fail("expected at least 1 input, got 0");
    Shape sum = in[0];
    int axis;
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, sum.dims, &axis));
    int64_t size = 0;
    for (size_t i = 0; i < in.size(); i++) {
        Shape expected = sum;
        if (in[i].dims == sum.dims) expected.set_size(axis, in[i].size(axis));
        if (in[i] != expected)
            return s.fail("input %zu is %s (%s), which does not fit %s (%s) on axis %d", i,
                          shape_text(in[i]).c_str(), dtype_name(in[i].dtype),
                          shape_text(sum).c_str(), dtype_name(sum.dtype), axis);
        size += in[i].size(axis);
    }
    if (size > INT_MAX)
        return s.fail("the output would have %lld on axis %d", (long long)size, axis);
    sum.set_size(axis, (int)size);
    out.assign(1, sum);
    return kOk;
}

bool Concat::join_others(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt,
                         int* status) const {
    const auto has_values = [](const Mat& m) { return m.logical_shape().total() > 0; };
    if (std::all_of(bottoms.begin(), bottoms.end(), has_values)) return false;
    std::vector<Mat> others;
    std::vector<Shape> in, out;
    for (const Mat& m : bottoms) {
        in.push_back(m.logical_shape());
        if (has_values(m)) others.push_back(m);
    }
    *status = infer_shapes(in, out);
    if (*status != kOk) return true;
    tops.resize(1);
    *status = others.empty() ? create_tensor(out[0], &tops[0], opt) : forward(others, tops, opt);
    return true;
}

int Concat::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    int status = kOk;
    if (join_others(bottoms, tops, opt, &status)) return status;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const int dims = bottoms[0].dims;
    const int along = axis_of_four(axis < 0 ? axis + dims : axis, dims);
    int to[4] = {0, 0, 0, 0};
    for (const Mat& m : bottoms) {
        const Block block = whole_block(m);
        copy_block(m, block, tops[0], to);
        to[along] += block.size[along];
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Concat)

}  // namespace quoll
