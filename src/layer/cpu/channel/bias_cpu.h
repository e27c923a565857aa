#ifndef QUOLL_LAYER_CPU_CHANNEL_BIAS_CPU_H
#define QUOLL_LAYER_CPU_CHANNEL_BIAS_CPU_H

#include "layer/cpu/common/kernel_set.h"
#include "layer/elementwise/bias.h"

namespace quoll {

class BiasCpu : public Bias {
public:
    BiasCpu();
    int forward_inplace(Mat& blob, const Option& opt) const override;

private:
    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
