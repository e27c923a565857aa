// Mean and variance over groups of channels, whatever the elempack.
#ifndef QUOLL_LAYER_CPU_NORM_CHANNEL_NORM_H
#define QUOLL_LAYER_CPU_NORM_CHANNEL_NORM_H

#include "layer/common/activation.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/kernel_set.h"
#include "quoll/mat.h"
#include "quoll/option.h"

namespace quoll {

// Calls f(values, count) with the values of a blob without gaps, converted to floats meanwhile.
template <class F>
int with_floats(Mat& blob, const Option& opt, F f) {
    const size_t count = (size_t)blob.w * blob.h * blob.elempack;
    const StorageKernels* storage = storage_kernels(host_kernel_set(), blob.dtype);
    if (!storage) return f((float*)blob.data, count), (int)kOk;
    Mat floats((int)count, (size_t)4u, opt.workspace_allocator);
    if (floats.empty()) return kOutOfMemory;
    storage->widen((const uint16_t*)blob.data, floats, count);
    f((float*)floats.data, count);
    storage->narrow(floats, (uint16_t*)blob.data, count);
    return kOk;
}

// x = (x - mean) / sqrt(variance + eps) * gamma + beta in place, with mean and variance over each
// of `groups` groups of equally many channels (the outermost axis); gamma and beta have a value per
// channel, or are null: ones and zeros. A negative code if memory runs out. `blob` has floats or
// 16-bit values, as with_floats takes them; `activation` is applied to the results.
int normalize_channels(const KernelSet& kernels, Mat& blob, int groups, float eps,
                       const float* gamma, const float* beta, const Activation& activation,
                       const Option& opt);

}  // namespace quoll

#endif
