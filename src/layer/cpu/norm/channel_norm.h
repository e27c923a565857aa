// Mean and variance over groups of channels, whatever the elempack.
#ifndef QUOLL_LAYER_CPU_NORM_CHANNEL_NORM_H
#define QUOLL_LAYER_CPU_NORM_CHANNEL_NORM_H

#include "layer/cpu/common/kernel_set.h"
#include "quoll/mat.h"
#include "quoll/option.h"

namespace quoll {

// x = (x - mean) / sqrt(variance + eps) * gamma + beta in place, with mean and variance over each
// of `groups` groups of equally many channels (the outermost axis); gamma and beta have a value a
// channel, or are null: ones and zeros. A negative code when memory runs out.
int normalize_channels(const KernelSet& kernels, Mat& blob, int groups, float eps,
                       const float* gamma, const float* beta, const Option& opt);

}  // namespace quoll

#endif
