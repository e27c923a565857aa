#include "layer/control/input.h"

#include <algorithm>

#include "layer/common/elementtype.h"

namespace quoll {

// One output and no input: an Input never runs in an Extractor, which takes the blob from the user.
Input::Input() : w(0), h(0), d(0), c(0) {
    support_inplace = true;
    support_packing = support_batch = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Input::params(Input& s, ParamVisitor& v) {
    v(0, "w", s.w, 0, "width, 0: not said", at_least(0));
    v(1, "h", s.h, 0, "height, 0 or less: not said", at_least(-233));
    v(11, "d", s.d, 0, "depth", at_least(-233));
    v(2, "c", s.c, 0, "channels", at_least(-233));
    tensor_spec_params(s.array, v);
}

void Input::weights(Input&, WeightVisitor&) {}

int Input::shape(const Input& s, const std::vector<Shape>&, std::vector<Shape>& out) {
    // ncnn's converter for Caffe wrote -233 for what a shape does not have.
    const int h = std::max(s.h, 0), d = std::max(s.d, 0), c = std::max(s.c, 0);
    out.assign(1, d     ? Shape(s.w, h, d, c)
                  : c   ? Shape(s.w, h, c)
                  : h   ? Shape(s.w, h)
                  : s.w ? Shape(s.w)
                        : Shape());
    if (const ElementInfo* type = element_info(s.array.element_type)) out[0].dtype = type->dtype;
    return kOk;
}

int Input::forward_inplace(Mat&, const Option&) const { return kOk; }

QUOLL_DEFINE_LAYER(Input)

}  // namespace quoll
