// Facts about blobs of any elempack, for layers and plans.
#ifndef QUOLL_LAYER_ELEMPACK_H
#define QUOLL_LAYER_ELEMPACK_H

#include "quoll/mat.h"

namespace quoll {

// The widest elempack that the fast implementations choose on this machine.
int native_elempack();

// The widest elempack of 1, 4, 8, 16 that is at most `most` and divides `size`.
int pack_within(int most, int size);

// A blob of one axis with elempack 1, the same memory.
Mat planar_view(const Mat& m);

// Channels `first` to first + count - 1 of a blob of 2 axes or more as a blob that shares its memory;
// false if they do not begin and end with an element, or begin where memory is not aligned.
bool share_channels(const Mat& m, int first, int count, Mat* out);

}  // namespace quoll

#endif
