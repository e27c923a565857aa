#ifndef QUOLL_LAYER_CPU_CHANNEL_PRELU_CPU_H
#define QUOLL_LAYER_CPU_CHANNEL_PRELU_CPU_H

#include "layer/activation/prelu.h"
#include "layer/cpu/common/kernel_set.h"

namespace quoll {

class PReLUCpu : public PReLU {
public:
    PReLUCpu();
    int forward_inplace(Mat& blob, const Option& opt) const override;

private:
    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
