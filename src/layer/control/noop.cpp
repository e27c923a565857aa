#include "layer/control/noop.h"

namespace quoll {

Noop::Noop() {
    support_packing = support_batch = support_zero_size = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Noop::params(Noop&, ParamVisitor&) {}
void Noop::weights(Noop&, WeightVisitor&) {}

int Noop::shape(const Noop& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const size_t count = s.tops.empty() && out.empty() ? in.size() : output_count(s, out);
    if (in.size() < count) return s.fail("%zu outputs of %zu inputs", count, in.size());
    out.assign(in.begin(), in.begin() + count);
    return kOk;
}

int Noop::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& top_blobs,
                  const Option&) const {
    const size_t count = !tops.empty()        ? tops.size()
                         : top_blobs.empty() ? bottoms.size()
                                             : top_blobs.size();
    if (bottoms.size() < count) return fail("%zu outputs of %zu inputs", count, bottoms.size());
    top_blobs.assign(bottoms.begin(), bottoms.begin() + count);
    return kOk;
}

void Noop::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                        std::vector<BlobLayout>* out) const {
    *out = in;
    out->resize(tops.size());
    for (size_t i = 0; i < tops.size(); i++) (*out)[i].shares = (int)i;
}

QUOLL_DEFINE_LAYER(Noop)

}  // namespace quoll
