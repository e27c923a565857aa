#include "layer/tensor/argmax.h"

#include <math.h>

#include <algorithm>
#include <numeric>

#include "layer/common/blocks.h"

namespace quoll {

ArgMax::ArgMax() { one_blob_only = true; }

void ArgMax::params(ArgMax& s, ParamVisitor& v) {
    v(0, "out_max_val", s.out_max_val, 0, "1: the values, too", between(0, 1));
    v(1, "topk", s.topk, 1, "how many", at_least(1));
}

void ArgMax::weights(ArgMax&, WeightVisitor&) {}

int ArgMax::shape(const ArgMax& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1 || in[0].dims < 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dtype != DType::f32) return s.fail("expected f32, got %s", dtype_name(in[0].dtype));
    if ((size_t)s.topk > item_total(in[0]))
        return s.fail("topk: expected at most the number of values, %zu, got %d", item_total(in[0]),
                      s.topk);
    out.assign(1, Shape(s.topk, s.out_max_val ? 2 : 1));
    out[0].n = in[0].n;
    return kOk;
}

int ArgMax::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom}, tops, opt));
    top = tops[0];
    Mat flat;
    QUOLL_RETURN_IF_ERROR(
        reshape_blob(bottom, Shape((int)bottom.logical_shape().total()), &flat, opt));
    const float* x = flat;
    std::vector<int> order(flat.w);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + topk, order.end(), [x](int a, int b) {
        if (isnan(x[a]) || isnan(x[b])) return isnan(x[a]) && (!isnan(x[b]) || a > b);
        return x[a] > x[b] || (x[a] == x[b] && a > b);
    });
    float* const indexes = top.row(out_max_val ? 1 : 0);
    for (int i = 0; i < topk; i++) {
        if (out_max_val) top.row(0)[i] = x[order[i]];
        indexes[i] = (float)order[i];
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(ArgMax)

}  // namespace quoll
