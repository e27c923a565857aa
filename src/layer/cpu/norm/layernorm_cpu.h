#ifndef QUOLL_LAYER_CPU_NORM_LAYERNORM_CPU_H
#define QUOLL_LAYER_CPU_NORM_LAYERNORM_CPU_H

#include "layer/cpu/common/kernel_set.h"
#include "layer/norm/layernorm.h"

namespace quoll {

// Takes any elempack; the result has elempack 1.
class LayerNormCpu : public LayerNorm {
public:
    LayerNormCpu();
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    int forward_inplace(Mat& blob, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    auto normalizer() const;

    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
