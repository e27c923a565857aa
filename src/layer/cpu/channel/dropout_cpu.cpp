#include "layer/cpu/channel/dropout_cpu.h"

#include "layer/common/channels.h"
#include "layer/cpu/channel/apply.h"

namespace quoll {

DropoutCpu::DropoutCpu() : kernels_(&host_kernel_set()) { support_packing = true; }

int DropoutCpu::forward_inplace(Mat& blob, const Option& opt) const {
    if (scale == 1.f) return kOk;
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    apply_to_channels(kernels_->channel->affine, blob, &scale, nullptr, true, opt);
    return kOk;
}

Layer* create_Dropout_fast_layer() { return new DropoutCpu; }

}  // namespace quoll
