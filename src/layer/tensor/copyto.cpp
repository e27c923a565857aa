#include "layer/tensor/copyto.h"

#include <limits.h>

#include "layer/common/blocks.h"

namespace quoll {

static const int kFirst = -233;  // in starts: from the beginning

CopyTo::CopyTo() : woffset(0), hoffset(0), doffset(0), coffset(0) {
    support_fp16_storage = support_bf16_storage = true;
}

void CopyTo::params(CopyTo& s, ParamVisitor& v) {
    const Range offset = between(0, INT_MAX);
    v(0, "woffset", s.woffset, 0, "first column written", offset);
    v(1, "hoffset", s.hoffset, 0, "first row", offset);
    v(13, "doffset", s.doffset, 0, "first depth", offset);
    v(2, "coffset", s.coffset, 0, "first channel", offset);
    v.ints(9, "starts", s.starts, "first indexes along axes; negative: from the end, -233: 0");
    v.ints(11, "axes", s.axes, "axes of starts, 0: outermost, -1: innermost; none: all",
           between(-4, 3));
}

void CopyTo::weights(CopyTo&, WeightVisitor&) {}

int CopyTo::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (starts.empty() || axes.empty() || starts.w >= axes.w) return kOk;
    return fail("starts (9): expected one for each of %d axes, got %d", axes.w, starts.w);
}

// The channels of three axes go to those of four, not to d.
static Shape aligned(const Shape& src, int dims) {
    if (dims != 4 || src.dims != 3) return src;
    return Shape(src.w, src.h, 1, src.c, src.dtype);
}

int CopyTo::offsets(const Shape& self, const Shape& source, int to[4]) const {
    const Shape src = aligned(source, self.dims);
    int64_t at[4] = {coffset, doffset, hoffset, woffset};
    // d of three axes is that of the channels.
    if (self.dims == 3) at[1] = coffset, at[0] = 0;
    if (self.dims < 3) at[0] = at[1] = 0;
    if (self.dims < 2) at[2] = 0;
    if (!starts.empty()) {
        const int count = axes.empty() ? self.dims : axes.w;
        if (starts.w < count) return fail("%d starts for %d axes", starts.w, count);
        for (int64_t& a : at) a = 0;
        for (int i = 0; i < count; i++) {
            int axis = i;
            if (!axes.empty())
                QUOLL_RETURN_IF_ERROR(
                    resolve_axis(*this, ((const int*)axes.data)[i], self.dims, &axis));
            const int64_t start = ((const int*)starts.data)[i];
            at[axis_of_four(axis, self.dims)] = start == kFirst ? 0
                                                : start < 0     ? self.size(axis) + start
                                                                : start;
        }
    }
    for (int i = 0; i < 4; i++) {
        const int skip = 4 - self.dims, size = i < skip ? 1 : self.size(i - skip);
        const int src_skip = 4 - src.dims, part = i < src_skip ? 1 : src.size(i - src_skip);
        if (at[i] < 0 || at[i] + part > size)
            return fail("%s at offset %lld of axis %d does not fit %s", shape_text(src).c_str(),
                        (long long)at[i], i - skip, shape_text(self).c_str());
        to[i] = (int)at[i];
    }
    return kOk;
}

int CopyTo::shape(const CopyTo& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 2) return s.fail("expected 2 inputs, got %zu", in.size());
    if (in[0].dims < 1 || in[1].dims < 1 || in[0].dtype != in[1].dtype || in[0].n != in[1].n)
        return s.fail("%s of %s cannot be copied to %s of %s", shape_text(in[1]).c_str(),
                      dtype_name(in[1].dtype), shape_text(in[0]).c_str(), dtype_name(in[0].dtype));
    out.assign(1, in[0]);
    int to[4];
    return in[0] == in[1] ? (int)kOk : s.offsets(in[0], in[1], to);
}

int CopyTo::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                    const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottom_blobs), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    top_blobs.resize(1);
    if (in[0] == in[1]) {
        top_blobs[0] = bottom_blobs[1];
        return kOk;
    }
    int to[4];
    QUOLL_RETURN_IF_ERROR(offsets(in[0], in[1], to));
    top_blobs[0] = bottom_blobs[0].clone(opt.blob_allocator);
    if (top_blobs[0].empty()) return kOutOfMemory;
    Mat src;
    QUOLL_RETURN_IF_ERROR(reshape_blob(bottom_blobs[1], aligned(in[1], in[0].dims), &src, opt));
    copy_block(src, whole_block(src), top_blobs[0], to);
    return kOk;
}

QUOLL_DEFINE_LAYER(CopyTo)

}  // namespace quoll
