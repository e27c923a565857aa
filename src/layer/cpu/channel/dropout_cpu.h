#ifndef QUOLL_LAYER_CPU_CHANNEL_DROPOUT_CPU_H
#define QUOLL_LAYER_CPU_CHANNEL_DROPOUT_CPU_H

#include "layer/cpu/common/kernel_set.h"
#include "layer/elementwise/dropout.h"

namespace quoll {

class DropoutCpu : public Dropout {
public:
    DropoutCpu();
    int forward_inplace(Mat& blob, const Option& opt) const override;

private:
    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
