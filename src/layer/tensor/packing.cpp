#include "layer/tensor/packing.h"

#include <limits.h>
#include <string.h>

#include "layer/common/blocks.h"
#include "layer/elementwise/cast.h"

namespace quoll {

Packing::Packing() {
    one_blob_only = true;
    support_packing = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Packing::params(Packing& s, ParamVisitor& v) {
    v(0, "out_elempack", s.out_elempack, 1, "values an element", between(1, 64));
    v(1, "use_padding", s.use_padding, 0, "1: grow to a multiple", between(0, 1));
    v(2, "cast_type_from", s.cast_type_from, 0, "as Cast's type_from", between(0, 4));
    v(3, "cast_type_to", s.cast_type_to, 0, "as Cast's type_to", between(0, 4));
    v(4, "storage_type_from", s.storage_type_from, 0, "buffer or image, for GPUs");
    v(5, "storage_type_to", s.storage_type_to, 0, "buffer or image, for GPUs");
}

void Packing::weights(Packing&, WeightVisitor&) {}

int Packing::shape(const Packing& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1 || in[0].dims < 1) return s.fail("expected 1 input, got %zu", in.size());
    out = in;
    if (s.cast_type_to) out[0].dtype = Cast::dtype_of(s.cast_type_to);
    if (!s.use_padding) return kOk;
    const int64_t size = in[0].size(0), more = (size + s.out_elempack - 1) / s.out_elempack;
    if (more * s.out_elempack > INT_MAX) return s.fail("%lld values", (long long)size);
    out[0].set_size(0, (int)more * s.out_elempack);
    return kOk;
}

// `in` with zeros behind it on the outermost axis.
static int grow(const Mat& in, const Shape& to, Mat* out, const Option& opt) {
    Mat planar;
    convert_packing(in, planar, 1, opt);
    if (planar.empty()) return kOutOfMemory;
    out->create(to, 1, opt.blob_allocator);
    if (out->empty()) return kOutOfMemory;
    memset(out->data, 0, out->total() * out->elemsize);
    const int origin[4] = {0, 0, 0, 0};
    copy_block(planar, whole_block(planar), *out, origin);
    return kOk;
}

int Packing::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    Mat m;
    QUOLL_RETURN_IF_ERROR(cast_blob(*this, bottom, out[0].dtype, &m, opt));
    if (m.logical_shape() != out[0]) {
        Mat grown;
        QUOLL_RETURN_IF_ERROR(grow(m, out[0], &grown, opt));
        m = grown;
    }
    convert_packing(m, top, out_elempack, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

void Packing::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                           std::vector<BlobLayout>* out) const {
    BlobLayout& top = (*out)[0];
    if (cast_type_to) top.shape.dtype = Cast::dtype_of(cast_type_to);
    const bool fits = top.shape.size(0) % out_elempack == 0;
    const bool grown = top.shape.size(0) != in[0].shape.size(0);
    top.elempack = fits ? out_elempack : grown ? 1 : in[0].elempack;
    if (top.shape == in[0].shape && top.elempack == in[0].elempack) top.shares = 0;
}

QUOLL_DEFINE_LAYER(Packing)

}  // namespace quoll
