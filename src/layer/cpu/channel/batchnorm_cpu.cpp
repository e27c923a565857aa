#include "layer/cpu/channel/batchnorm_cpu.h"

#include "layer/common/channels.h"
#include "layer/cpu/channel/apply.h"

namespace quoll {

BatchNormCpu::BatchNormCpu() : kernels_(&host_kernel_set()) {
    support_packing = support_batch = support_fp16_storage = support_bf16_storage = true;
}

int BatchNormCpu::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, bottom));
    top.create_like(bottom, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    apply_to_channels(kernels_->channel->affine, bottom, top, b_data, a_data, false, opt);
    return kOk;
}

int BatchNormCpu::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    apply_to_channels(kernels_->channel->affine, blob, b_data, a_data, false, opt);
    return kOk;
}

Layer* create_BatchNorm_fast_layer() { return new BatchNormCpu; }

}  // namespace quoll
