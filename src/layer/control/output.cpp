#include "layer/control/output.h"

namespace quoll {

Output::Output() {
    one_blob_only = true;
    support_packing = support_batch = support_zero_size = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Output::params(Output& s, ParamVisitor& v) { tensor_spec_params(s.array, v); }

void Output::weights(Output&, WeightVisitor&) {}

int Output::shape(const Output& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    out = in;
    return kOk;
}

int Output::forward(const Mat& bottom_blob, Mat& top_blob, const Option&) const {
    top_blob = bottom_blob;
    return kOk;
}

QUOLL_DEFINE_LAYER(Output)

}  // namespace quoll
