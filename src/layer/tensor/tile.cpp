#include "layer/tensor/tile.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

namespace quoll {

Tile::Tile() {
    one_blob_only = true;
    support_packing = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Tile::params(Tile& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "axis that is repeated, 0: outermost", between(0, 3));
    v(1, "tiles", s.tiles, 1, "how often", at_least(1));
    v.ints(2, "repeats", s.repeats, "how often each axis is, the last being w; replaces the others",
           at_least(1));
}

void Tile::weights(Tile&, WeightVisitor&) {}

int Tile::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (repeats.w > 4) return fail("repeats: expected at most 4 values, got %d", repeats.w);
    return kOk;
}

int Tile::shape(const Tile& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1 || in[0].dims < 1) return s.fail("expected 1 input, got %zu", in.size());
    const int dims = in[0].dims, count = s.repeats.w;
    Shape times = in[0];
    times.dims = std::max(dims, count);
    times.w = times.h = times.d = times.c = 1;
    for (int i = 0; i < count; i++)
        times.set_size(times.dims - count + i, ((const int*)s.repeats)[i]);
    if (count == 0 && (dims == 1 || s.axis < dims)) times.set_size(dims == 1 ? 0 : s.axis, s.tiles);
    out = in;
    out[0].dims = times.dims;
    // Fields of axes that the input does not have are 1.
    for (int Shape::*field : {&Shape::w, &Shape::h, &Shape::d, &Shape::c}) {
        const int64_t size = (int64_t)(in[0].*field) * (times.*field);
        if (size > INT_MAX)
            return s.fail("a size of %d repeated %d times is too large", in[0].*field,
                          times.*field);
        out[0].*field = (int)size;
    }
    return kOk;
}

// Elements stay whole where the outermost axis stays the same: its size is a multiple of elempack.
int Tile::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    Mat m = bottom;
    if (out[0] == bottom.logical_shape()) {
        top = bottom;
        return kOk;
    }
    if (out[0].dims != bottom.dims) convert_packing(bottom, m, 1, opt);
    if (m.empty()) return kOutOfMemory;
    top.create(out[0], m.elempack, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    const size_t bytes = m.w * m.elemsize;
    for (int q = 0; q < top.c; q++)
        for (int z = 0; z < top.d; z++)
            for (int y = 0; y < top.h; y++) {
                const size_t row = (size_t)(z % m.d * m.h + y % m.h) * m.w;
                const char* from = (const char*)m.data + (q % m.c * m.cstep + row) * m.elemsize;
                char* to = (char*)top.data +
                           (q * top.cstep + ((size_t)z * top.h + y) * top.w) * top.elemsize;
                for (size_t x = 0; x < (size_t)top.w; x += m.w)
                    memcpy(to + x * m.elemsize, from, bytes);
            }
    return kOk;
}

void Tile::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                        std::vector<BlobLayout>* out) const {
    BlobLayout& top = (*out)[0];
    if (in[0].shape.dims == top.shape.dims) top.elempack = in[0].elempack;
    if (in[0].shape == top.shape) top.shares = 0;
}

QUOLL_DEFINE_LAYER(Tile)

}  // namespace quoll
