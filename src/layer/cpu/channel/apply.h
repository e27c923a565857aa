// Kernels of the channel family on whole blobs.
#ifndef QUOLL_LAYER_CPU_CHANNEL_APPLY_H
#define QUOLL_LAYER_CPU_CHANNEL_APPLY_H

#include "layer/cpu/channel/channel.h"
#include "quoll/mat.h"

namespace quoll {

// Applies the kernel to a blob of f32, f16 or bf16, of any dims, elempack and batch. `a` and `b`
// have a value for each index of the outermost axis, or, if one_for_all, a single one. in: the
// values, in a blob like this one or in itself.
void apply_to_channels(ChannelKernel kernel, const Mat& in, Mat& blob, const float* a,
                       const float* b, bool one_for_all, const Option& opt);
inline void apply_to_channels(ChannelKernel kernel, Mat& blob, const float* a, const float* b,
                              bool one_for_all, const Option& opt) {
    apply_to_channels(kernel, blob, blob, a, b, one_for_all, opt);
}

}  // namespace quoll

#endif
