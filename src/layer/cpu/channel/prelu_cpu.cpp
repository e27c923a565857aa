#include "layer/cpu/channel/prelu_cpu.h"

#include "layer/common/channels.h"
#include "layer/cpu/channel/apply.h"

namespace quoll {

PReLUCpu::PReLUCpu() : kernels_(&host_kernel_set()) {
    support_packing = support_fp16_storage = support_bf16_storage = true;
}

int PReLUCpu::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    if (blob.dtype == DType::s8) return PReLU::forward_inplace(blob, opt);
    apply_to_channels(kernels_->channel->prelu, blob, slope_data, nullptr, num_slope == 1, opt);
    return kOk;
}

Layer* create_PReLU_fast_layer() { return new PReLUCpu; }

}  // namespace quoll
