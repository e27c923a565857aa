// Kernels with parameters that repeat along the data, as those of a channel do.
#ifndef QUOLL_LAYER_CPU_CHANNEL_CHANNEL_H
#define QUOLL_LAYER_CPU_CHANNEL_CHANNEL_H

#include <stddef.h>

namespace quoll {

// data[i] = f(data[i], a[i % period], b[i % period]) for i < n, a multiple of period. A null a
// stands for ones, a null b for zeros. No alignment needed.
typedef void (*ChannelKernel)(float* data, size_t n, size_t period, const float* a, const float* b);

struct ChannelKernels {
#define QUOLL_CHANNEL(name, functor) ChannelKernel name;
#include "layer/cpu/channel/kernels.inc"
#undef QUOLL_CHANNEL
};

}  // namespace quoll

#endif
