#include "layer/vision/reorg.h"

#include <limits.h>

#include "layer/common/strided.h"

namespace quoll {

Reorg::Reorg() : stride(1), mode(0) {
    one_blob_only = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Reorg::params(Reorg& s, ParamVisitor& v) {
    v(0, "stride", s.stride, 1, "side of a patch", at_least(1));
    v(1, "mode", s.mode, 0, "0: channel, place in the patch; 1: place, channel", between(0, 1));
}

void Reorg::weights(Reorg&, WeightVisitor&) {}

int Reorg::shape(const Reorg& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dims < 1 || in[0].dims > 3)
        return s.fail("expected 1 to 3 axes, got %s", shape_text(in[0]).c_str());
    const double channels = (double)in[0].c * s.stride * s.stride;
    if ((in[0].total() && std::min(in[0].w, in[0].h) < s.stride) || channels > INT_MAX)
        return s.fail("patches of %d x %d do not fit %s", s.stride, s.stride,
                      shape_text(in[0]).c_str());
    out.assign(1, Shape(in[0].w / s.stride, in[0].h / s.stride, (int)channels, in[0].dtype));
    out[0].n = in[0].n;
    return kOk;
}

int Reorg::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    const size_t es = bottom_blob.elemsize;
    const ptrdiff_t w = bottom_blob.w, top_w = top_blob.w;
    // Axes: channel, place down the patch (places across are the loop below), row, column.
    const ptrdiff_t per_channel = mode == 0 ? stride * stride : 1;
    const ptrdiff_t per_place = mode == 0 ? 1 : bottom_blob.c;
    const ptrdiff_t step = (ptrdiff_t)top_blob.cstep;
    const ptrdiff_t from[4] = {(ptrdiff_t)bottom_blob.cstep, w, w * stride, stride};
    const ptrdiff_t to[4] = {per_channel * step, per_place * stride * step, top_w, 1};
    const int size[4] = {bottom_blob.c, stride, top_blob.h, top_blob.w};
    for (int x = 0; x < stride; x++)
        copy_strided((const char*)bottom_blob.data + x * es, from,
                     (char*)top_blob.data + x * per_place * step * (ptrdiff_t)es, to, size, es);
    return kOk;
}

QUOLL_DEFINE_LAYER(Reorg)

}  // namespace quoll
