#include "layer/cpu/norm/groupnorm_cpu.h"

#include "layer/common/channels.h"
#include "layer/cpu/norm/channel_norm.h"

namespace quoll {

GroupNormCpu::GroupNormCpu() : kernels_(&host_kernel_set()) {
    support_packing = support_fp16_storage = support_bf16_storage = true;
}

int GroupNormCpu::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    return normalize_channels(*kernels_, blob, group, eps,
                              affine ? (const float*)gamma_data : nullptr,
                              affine ? (const float*)beta_data : nullptr, Activation(), opt);
}

Layer* create_GroupNorm_fast_layer() { return new GroupNormCpu; }

}  // namespace quoll
