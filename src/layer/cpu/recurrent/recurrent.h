// Kernels of the recurrent cells: what a step makes of the gates' sums.
#ifndef QUOLL_LAYER_CPU_RECURRENT_RECURRENT_H
#define QUOLL_LAYER_CPU_RECURRENT_RECURRENT_H

#include <stddef.h>

namespace quoll {

// n values per gate; gate g of x (the input's sums) and h (the state's) begins at g * n. hidden and
// cell are updated in place (a cell without one: null). No alignment needed; hidden may be h's
// neighbour but must not overlap it.
typedef void (*RecurrentKernel)(const float* x, const float* h, size_t n, float* hidden,
                                float* cell);

struct RecurrentKernels {
#define QUOLL_RECURRENT(name, functor, gates) RecurrentKernel name;
#include "layer/cpu/recurrent/kernels.inc"
#undef QUOLL_RECURRENT
    // Those that are only as exact as is needed for states that are rounded to bf16; null where
    // they would not be cheaper.
    const RecurrentKernels* rounded;
};

}  // namespace quoll

#endif
