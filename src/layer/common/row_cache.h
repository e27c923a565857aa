// Keys or values of a sequence that grows: rows are appended where the memory has room for them,
// so that a step does not copy all that came before.
#ifndef QUOLL_LAYER_COMMON_ROW_CACHE_H
#define QUOLL_LAYER_COMMON_ROW_CACHE_H

#include "quoll/mat.h"
#include "quoll/option.h"

namespace quoll {

// *all: the rows of `past` (may be empty) and then of `cur` in each channel; of both f32, elempack
// 1, n 1 and, but for the rows, the same sizes. With opt.use_growing_cache *all has room for more
// rows (its cstep is larger than its rows take), and when `past` is such a Mat that no other call
// has added to yet, *all shares its memory. kOutOfMemory without a message.
int append_rows(const Mat& past, const Mat& cur, const Option& opt, Mat* all);

}  // namespace quoll

#endif
