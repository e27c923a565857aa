#include "layer/tensor/slice.h"

#include "layer/common/blocks.h"

namespace quoll {

static const int kShare = -233;

Slice::Slice() { support_fp16_storage = support_bf16_storage = true; }

void Slice::params(Slice& s, ParamVisitor& v) {
    v.ints(0, "slices", s.slices, "sizes of the pieces, -233: an equal share of the rest");
    v(1, "axis", s.axis, 0, "axis, 0: outermost, -1: innermost", between(-4, 3));
    v.ints(2, "indices", s.indices, "ends of the pieces, negative: from the end");
    v(3, "exact", s.exact, 0,
      "1: an error if pieces leave some of the axis, or equal shares differ");
}

void Slice::weights(Slice&, WeightVisitor&) {}

// The size of piece i when `done` of `size` are already cut off.
int Slice::piece_size(int i, int count, int size, int done) const {
    if (!indices.empty()) {
        if (i == count - 1) return size - done;
        const int end = ((const int*)indices)[i];
        return (end < 0 ? size + end : end) - done;
    }
    const int piece = ((const int*)slices)[i];
    return piece == kShare ? (size - done) / (count - i) : piece;
}

int Slice::shape(const Slice& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    const bool by_index = !s.indices.empty();
    const int given = by_index ? s.indices.w : s.slices.w;
    const int count = s.tops.empty() && out.size() < 2 ? given : (int)output_count(s, out);
    if (count < 1 || (by_index ? given < count - 1 : given < count))
        return s.fail("%d %s are too few for %d outputs", given, by_index ? "indices" : "slices",
                      count);
    int axis;
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims, &axis));
    const int size = in[0].size(axis);
    out.assign(count, in[0]);
    int done = 0, share = -1;
    for (int i = 0; i < count; i++) {
        const int piece = s.piece_size(i, count, size, done);
        if (piece < (size > 0) || piece > size - done)
            return s.fail("piece %d of axis %d would have size %d, %d of %d are left", i, axis,
                          piece, size - done, size);
        out[i].set_size(axis, piece);
        done += piece;
        if (by_index || ((const int*)s.slices)[i] != kShare) continue;
        if (s.exact && share >= 0 && piece != share)
            return s.fail("axis %d has %d, of which equal shares would be %d and %d", axis, size,
                          share, piece);
        share = piece;
    }
    if (s.exact && done != size)
        return s.fail("pieces of %d in all, axis %d has %d", done, axis, size);
    return kOk;
}

int Slice::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                   const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const int dims = bottoms[0].dims;
    const int along = axis_of_four(axis < 0 ? axis + dims : axis, dims);
    const int to[4] = {0, 0, 0, 0};
    int start = 0;
    for (Mat& top : tops) {
        Block block = whole_block(top);
        block.start[along] = start;
        start += block.size[along];
        copy_block(bottoms[0], block, top, to);
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Slice)

}  // namespace quoll
