#include "layer/cpu/norm/instancenorm_cpu.h"

#include "layer/common/channels.h"
#include "layer/cpu/channel/channel.h"
#include "layer/cpu/norm/channel_norm.h"
#include "layer/cpu/norm/norm.h"

namespace quoll {

InstanceNormCpu::InstanceNormCpu() : kernels_(&host_kernel_set()) {
    support_packing = support_fp16_storage = support_bf16_storage = true;
}

int InstanceNormCpu::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    const float* gamma = affine ? (const float*)gamma_data : nullptr;
    const float* beta = affine ? (const float*)beta_data : nullptr;
    const float eps = bytes ? this->eps / bytes.scale / bytes.scale : this->eps;
    if (blob.dims >= 3) {
        const int count = blob.c * blob.elempack;
        return normalize_channels(*kernels_, blob, count, eps, gamma, beta, activation, opt, bytes);
    }
    const auto normalize = [&](float* values, size_t size) {  // all one channel
        kernels_->norm->normalize_row(values, size, eps, nullptr, nullptr);
        if (affine) kernels_->channel->affine(values, size, 1, gamma, beta);
        activate_all(values, size, activation);
    };
    return with_floats(blob, opt, normalize, bytes);
}

Layer* create_InstanceNorm_fast_layer() { return new InstanceNormCpu; }

}  // namespace quoll
