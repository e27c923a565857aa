#ifndef QUOLL_LAYER_CPU_CHANNEL_SCALE_CPU_H
#define QUOLL_LAYER_CPU_CHANNEL_SCALE_CPU_H

#include "layer/cpu/common/kernel_set.h"
#include "layer/elementwise/scale.h"

namespace quoll {

class ScaleCpu : public Scale {
public:
    ScaleCpu();
    int forward_inplace(Mat& blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
