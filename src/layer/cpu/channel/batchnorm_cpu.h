#ifndef QUOLL_LAYER_CPU_CHANNEL_BATCHNORM_CPU_H
#define QUOLL_LAYER_CPU_CHANNEL_BATCHNORM_CPU_H

#include "layer/cpu/channel/channel.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/norm/batchnorm.h"

namespace quoll {

class BatchNormCpu : public BatchNorm {
public:
    BatchNormCpu();
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    int forward_inplace(Mat& blob, const Option& opt) const override;

private:
    ChannelKernel kernel() const;

    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
