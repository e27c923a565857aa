// Resize kernels: weighted sums of a few values, along a row and across rows. No pointer needs
// alignment.
#ifndef QUOLL_LAYER_CPU_RESIZE_RESIZE_H
#define QUOLL_LAYER_CPU_RESIZE_RESIZE_H

#include <stddef.h>

namespace quoll {

// out[i][lane] = the sum over k of factor[i * taps + k] * row[index[i * taps + k]][lane] for i < n;
// `pack` lanes to an element.
typedef void (*ResizeRowKernel)(const float* row, const int* index, const float* factor, float* out,
                                int n);
// out[i] = the sum over k of factor[k] * rows[k][i], for i < n.
typedef void (*ResizeColumnKernel)(const float* const* rows, const float* factor, float* out,
                                   size_t n);

enum { kResizePacks = 4 };
const int kResizePack[kResizePacks] = {1, 4, 8, 16};

struct ResizeVariants {
    ResizeRowKernel row[kResizePacks];  // for each entry of kResizePack
    ResizeColumnKernel column;
};

struct ResizeKernels {
#define QUOLL_RESIZE(name, taps) ResizeVariants name;
#include "layer/cpu/resize/kernels.inc"
#undef QUOLL_RESIZE
};

}  // namespace quoll

#endif
