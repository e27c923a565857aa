#include "layer/cpu/channel/bias_cpu.h"

#include "layer/common/channels.h"
#include "layer/cpu/channel/apply.h"

namespace quoll {

BiasCpu::BiasCpu() : kernels_(&host_kernel_set()) {
    support_packing = support_fp16_storage = support_bf16_storage = true;
}

int BiasCpu::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    // 1-D and 2-D blobs are one channel.
    apply_to_channels(kernels_->channel->affine, blob, nullptr, bias_data, blob.dims < 3, opt);
    return kOk;
}

Layer* create_Bias_fast_layer() { return new BiasCpu; }

}  // namespace quoll
