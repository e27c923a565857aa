#include "layer/tensor/expanddims.h"

#include "layer/common/blocks.h"

namespace quoll {

ExpandDims::ExpandDims() {
    one_blob_only = support_batch = true;
    support_fp16_storage = support_bf16_storage = true;
}

void ExpandDims::params(ExpandDims& s, ParamVisitor& v) {
    v.ints(3, "axes", s.axes, "where axes of size 1 are added", between(-4, 3));
}

void ExpandDims::weights(ExpandDims&, WeightVisitor&) {}

int ExpandDims::shape(const ExpandDims& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1 || in[0].dims < 1) return s.fail("expected 1 input, got %zu", in.size());
    const int dims = in[0].dims, count = dims + s.axes.w;
    out = in;
    bool added[4] = {}, any = false;
    for (int i = 0; i < s.axes.w && count <= 4; i++) {
        const int axis = ((const int*)s.axes)[i], from_front = axis < 0 ? axis + count : axis;
        if (from_front < 0 || from_front >= count) continue;
        added[from_front] = any = true;
    }
    if (!any) return kOk;
    out[0].dims = count;
    out[0].w = out[0].h = out[0].d = out[0].c = 1;
    // From the innermost axis on, so that the axes added by repeated or excessive numbers stay in
    // front.
    for (int i = count - 1, from = dims - 1; i >= 0 && from >= 0; i--)
        if (!added[i]) out[0].set_size(i, in[0].size(from--));
    return kOk;
}

int ExpandDims::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    return reshape_blob(bottom, out[0], &top, opt);
}

QUOLL_DEFINE_LAYER(ExpandDims)

}  // namespace quoll
