#include "layer/tensor/flip.h"

#include "layer/common/blocks.h"
#include "layer/common/strided.h"

namespace quoll {

Flip::Flip() {
    one_blob_only = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Flip::params(Flip& s, ParamVisitor& v) {
    v.ints(0, "axes", s.axes, "axes to reverse, 0: outermost, -1: innermost", between(-4, 3));
}

void Flip::weights(Flip&, WeightVisitor&) {}

int Flip::shape(const Flip& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    int axis;
    for (int i = 0; i < s.axes.w; i++)
        QUOLL_RETURN_IF_ERROR(resolve_axis(s, ((const int*)s.axes.data)[i], in[0].dims, &axis));
    out = in;
    return kOk;
}

int Flip::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    const int dims = bottom_blob.dims;
    bool reversed[4] = {};
    for (int i = 0; i < axes.w; i++) {
        int axis;
        QUOLL_RETURN_IF_ERROR(resolve_axis(*this, ((const int*)axes.data)[i], dims, &axis));
        reversed[axis_of_four(axis, dims)] = true;
    }
    const Axes4 a = axes_of(bottom_blob), b = axes_of(top_blob);
    ptrdiff_t from[4], to[4], first = 0;
    for (int i = 0; i < 4; i++) {
        to[i] = (ptrdiff_t)b.step[i];
        from[i] = reversed[i] ? -(ptrdiff_t)a.step[i] : (ptrdiff_t)a.step[i];
        if (reversed[i]) first += (a.size[i] - 1) * (ptrdiff_t)a.step[i];
    }
    const ptrdiff_t es = (ptrdiff_t)bottom_blob.elemsize;
    copy_strided((const char*)bottom_blob.data + first * es, from, top_blob.data, to, a.size,
                 bottom_blob.elemsize);
    return kOk;
}

QUOLL_DEFINE_LAYER(Flip)

}  // namespace quoll
