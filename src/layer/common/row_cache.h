// Keys or values of a growing sequence: rows are appended in place if the memory has room for them,
// so that a step does not copy all earlier ones.
#ifndef QUOLL_LAYER_COMMON_ROW_CACHE_H
#define QUOLL_LAYER_COMMON_ROW_CACHE_H

#include "quoll/mat.h"
#include "quoll/option.h"

namespace quoll {

// Makes *all from the rows of `past` (may be empty) and then those of `cur`, in each channel. Both
// are f32, elempack 1, n 1, and have the same sizes except for the rows. With opt.use_growing_cache
// *all has room for more rows (its cstep is larger than its rows need), and if `past` is such a
// Mat, to which no other call has added yet, *all shares its memory. kOutOfMemory without a
// message.
int append_rows(const Mat& past, const Mat& cur, const Option& opt, Mat* all);

}  // namespace quoll

#endif
