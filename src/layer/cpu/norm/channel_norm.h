// Mean and variance over groups of channels, whatever the elempack.
#ifndef QUOLL_LAYER_CPU_NORM_CHANNEL_NORM_H
#define QUOLL_LAYER_CPU_NORM_CHANNEL_NORM_H

#include "layer/common/activation.h"
#include "layer/common/conv_window.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/int8/int8.h"
#include "layer/norm/instancenorm.h"
#include "quoll/mat.h"
#include "quoll/option.h"

namespace quoll {

// How a blob stores its values where that is not as floats.
class StoredValues {
public:
    // bytes: of a blob of s8.
    StoredValues(const KernelSet& kernels, DType dtype, const InstanceNorm::Bytes& bytes)
        : storage_(storage_kernels(kernels, dtype)), int8_(kernels.int8), bytes_(bytes) {}
    bool floats() const { return !storage_ && !is_int8(); }
    bool is_int8() const { return kHasInt8 && bytes_; }
    const StorageKernels* storage() const { return storage_; }
    // `from` and `to`: value number i of the blob. Those of int8 are in steps of its scale.
    void widen(const void* from, size_t i, float* values, size_t count) const {
        if (is_int8())
            int8_->from_affine((const int8_t*)from + i, count, 1.f, bytes_.zero_point, values);
        else
            storage_->widen((const uint16_t*)from + i, values, count);
    }
    void narrow(const float* values, void* to, size_t i, size_t count) const {
        if (is_int8())
            int8_->to_affine(values, count, bytes_.top_scale, bytes_.top_zero_point,
                             (int8_t*)to + i);
        else
            storage_->narrow(values, (uint16_t*)to + i, count);
    }

private:
    const StorageKernels* storage_;
    const Int8Kernels* int8_;
    const InstanceNorm::Bytes bytes_;
};

// Calls f(values, count) with the values of a blob without gaps, converted to floats meanwhile.
template <class F>
int with_floats(Mat& blob, const Option& opt, F f, const InstanceNorm::Bytes& bytes = {}) {
    const size_t count = (size_t)blob.w * blob.h * blob.elempack;
    const StoredValues stored(host_kernel_set(), blob.dtype, bytes);
    if (stored.floats()) return f((float*)blob.data, count), (int)kOk;
    Mat floats((int)count, (size_t)4u, opt.workspace_allocator);
    if (floats.empty()) return kOutOfMemory;
    stored.widen(blob.data, 0, floats, count);
    f((float*)floats.data, count);
    stored.narrow(floats, blob.data, 0, count);
    return kOk;
}

// x = (x - mean) / sqrt(variance + eps) * gamma + beta in place, with mean and variance over each
// of `groups` groups of equally many channels (the outermost axis); gamma and beta have a value per
// channel, or are null: ones and zeros. A negative code if memory runs out. `blob` has floats or
// 16-bit values, or s8 as `bytes` says, whose `eps` is in steps of their scale; `activation` is
// applied to the results.
int normalize_channels(const KernelSet& kernels, Mat& blob, int groups, float eps,
                       const float* gamma, const float* beta, const Activation& activation,
                       const Option& opt, const InstanceNorm::Bytes& bytes = {});

}  // namespace quoll

#endif
