#include "layer/control/deepcopy.h"

namespace quoll {

DeepCopy::DeepCopy() {
    one_blob_only = true;
    support_packing = support_batch = true;
    support_fp16_storage = support_bf16_storage = true;
}

void DeepCopy::params(DeepCopy&, ParamVisitor&) {}

void DeepCopy::weights(DeepCopy&, WeightVisitor&) {}

int DeepCopy::shape(const DeepCopy& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    return same_shapes(s, in, out);
}

int DeepCopy::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    if (bottom_blob.empty()) return fail("the input is empty");
    top_blob = bottom_blob.clone(opt.blob_allocator);
    return top_blob.empty() ? (int)kOutOfMemory : (int)kOk;
}

QUOLL_DEFINE_LAYER(DeepCopy)

}  // namespace quoll
