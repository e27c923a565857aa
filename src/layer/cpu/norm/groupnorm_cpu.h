#ifndef QUOLL_LAYER_CPU_NORM_GROUPNORM_CPU_H
#define QUOLL_LAYER_CPU_NORM_GROUPNORM_CPU_H

#include "layer/cpu/common/kernel_set.h"
#include "layer/norm/groupnorm.h"

namespace quoll {

// Takes any elempack, and keeps it.
class GroupNormCpu : public GroupNorm {
public:
    GroupNormCpu();
    int forward_inplace(Mat& blob, const Option& opt) const override;

private:
    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
