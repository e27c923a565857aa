#include "layer/tensor/squeeze.h"

#include "layer/common/blocks.h"

namespace quoll {

Squeeze::Squeeze() {
    one_blob_only = support_batch = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Squeeze::params(Squeeze& s, ParamVisitor& v) {
    v(0, "squeeze_w", s.squeeze_w, 0, "1: remove w", between(0, 1));
    v(1, "squeeze_h", s.squeeze_h, 0, "1: remove h", between(0, 1));
    v(11, "squeeze_d", s.squeeze_d, 0, "1: remove d", between(0, 1));
    v(2, "squeeze_c", s.squeeze_c, 0, "1: remove c", between(0, 1));
    v.ints(3, "axes", s.axes, "axes to remove, 0: outermost, -1: innermost", between(-4, 3));
}

void Squeeze::weights(Squeeze&, WeightVisitor&) {}

int Squeeze::shape(const Squeeze& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1 || in[0].dims < 1) return s.fail("expected 1 input, got %zu", in.size());
    const int dims = in[0].dims;
    Shape flags = in[0];
    flags.w = s.squeeze_w, flags.h = s.squeeze_h, flags.d = s.squeeze_d, flags.c = s.squeeze_c;
    if (!s.axes.empty())
        for (int i = 0; i < dims; i++) flags.set_size(i, 0);
    for (int i = 0; i < s.axes.w; i++) {
        const int axis = ((const int*)s.axes)[i], from_front = axis < 0 ? axis + dims : axis;
        if (from_front >= 0 && from_front < dims) flags.set_size(from_front, 1);
    }
    int sizes[4], count = 0;
    for (int i = 0; i < dims; i++)
        if (!flags.size(i) || in[0].size(i) != 1) sizes[count++] = in[0].size(i);
    if (count == 0) sizes[count++] = 1;
    out.assign(1, in[0]);
    out[0].dims = count;
    out[0].w = out[0].h = out[0].d = out[0].c = 1;
    for (int i = 0; i < count; i++) out[0].set_size(i, sizes[i]);
    return kOk;
}

int Squeeze::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    return reshape_blob(bottom, out[0], &top, opt);
}

QUOLL_DEFINE_LAYER(Squeeze)

}  // namespace quoll
