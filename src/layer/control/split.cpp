#include "layer/control/split.h"

namespace quoll {

Split::Split() {
    support_packing = support_batch = support_zero_size = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Split::params(Split&, ParamVisitor&) {}
void Split::weights(Split&, WeightVisitor&) {}

int Split::shape(const Split& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    out.assign(output_count(s, out), in[0]);
    return kOk;
}

int Split::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option&) const {
    if (bottoms.size() != 1) return fail("expected 1 input, got %zu", bottoms.size());
    for (Mat& top : tops) top = bottoms[0];
    return kOk;
}

QUOLL_DEFINE_LAYER(Split)

}  // namespace quoll
