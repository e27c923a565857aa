#include "layer/cpu/channel/batchnorm_cpu.h"

#include "layer/common/channels.h"
#include "layer/cpu/channel/apply.h"

namespace quoll {

BatchNormCpu::BatchNormCpu() : kernels_(&host_kernel_set()) {
    support_packing = support_batch = support_fp16_storage = support_bf16_storage = true;
}

ChannelKernel BatchNormCpu::kernel() const {
#if defined(__x86_64__) || defined(__i386__)  // as kTakesRelu
    if (relu) return kernels_->channel->affine_relu;
#endif
    return kernels_->channel->affine;
}

int BatchNormCpu::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, bottom));
    top.create_like(bottom, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    apply_to_channels(kernel(), bottom, top, b_data, a_data, false, opt);
    return kOk;
}

int BatchNormCpu::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    apply_to_channels(kernel(), blob, b_data, a_data, false, opt);
    return kOk;
}

Layer* create_BatchNorm_fast_layer() { return new BatchNormCpu; }

}  // namespace quoll
