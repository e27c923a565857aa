#include "layer/tensor/flatten.h"

#include <limits.h>

#include "layer/common/blocks.h"

namespace quoll {

Flatten::Flatten() {
    one_blob_only = support_batch = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Flatten::params(Flatten&, ParamVisitor&) {}
void Flatten::weights(Flatten&, WeightVisitor&) {}

int Flatten::shape(const Flatten& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    const size_t total = item_total(in[0]);
    if (total > INT_MAX) return s.fail("%zu values are too many for one axis", total);
    out.assign(1, Shape((int)total, in[0].dtype));
    out[0].n = in[0].n;
    return kOk;
}

int Flatten::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    return reshape_blob(bottom, out[0], &top, opt);
}

QUOLL_DEFINE_LAYER(Flatten)

}  // namespace quoll
