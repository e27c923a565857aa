#ifndef QUOLL_LAYER_CPU_CHANNEL_PRELU_CPU_H
#define QUOLL_LAYER_CPU_CHANNEL_PRELU_CPU_H

#include "layer/cpu/kernel_set.h"
#include "layer/prelu.h"

namespace quoll {

class PReLUCpu : public PReLU {
public:
    PReLUCpu();
    int create_pipeline(const Option& opt) override;
    int forward_inplace(Mat& blob, const Option& opt) const override;

private:
    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
