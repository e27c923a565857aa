// Rectangular blocks of blobs, for operators that only move data (Concat, Slice, Crop, Padding,
// Permute, ...). Any dtype: elements are moved as elemsize bytes.
#ifndef QUOLL_LAYER_BLOCKS_H
#define QUOLL_LAYER_BLOCKS_H

#include "layer/common/schema.h"

namespace quoll {

// A Mat of 1 to 4 axes seen as four, from the outermost (c, d, h, w): missing axes come first, with
// size 1. Sizes and steps count elements of elemsize bytes.
struct Axes4 {
    int size[4];
    size_t step[4];
};
Axes4 axes_of(const Mat& m);
// The index in Axes4 of axis `axis` (0 is the outermost) of a Mat of `dims` axes.
inline int axis_of_four(int axis, int dims) { return 4 - dims + axis; }

// A block within a Mat: first element and size on each of the four axes.
struct Block {
    int start[4];
    int size[4];
};
// All of m.
Block whole_block(const Mat& m);

// Copies src's block to dst at `to`. Both must have the same elemsize; the block must lie within
// both.
void copy_block(const Mat& src, const Block& block, Mat& dst, const int to[4]);

// m's values, order c d h w, in the shape `to` of as many values; shares the memory where the
// layout allows. Elempack 1.
int reshape_blob(const Mat& m, const Shape& to, Mat* out, const Option& opt);

// `axis` counted from the outermost, -1 being the innermost, as 0 <= result < dims; fails with a
// message if it is outside [-dims, dims).
int resolve_axis(const Layer& layer, int axis, int dims, int* result);

}  // namespace quoll

#endif
