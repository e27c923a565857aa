#ifndef QUOLL_LAYER_CPU_NORM_SOFTMAX_CPU_H
#define QUOLL_LAYER_CPU_NORM_SOFTMAX_CPU_H

#include "layer/cpu/common/kernel_set.h"
#include "layer/norm/softmax.h"

namespace quoll {

// Takes any elempack and keeps it, except that along the outermost axis a blob of several axes gets
// elempack 1.
class SoftmaxCpu : public Softmax {
public:
    SoftmaxCpu();
    int forward_inplace(Mat& blob, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
