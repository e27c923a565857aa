#ifndef QUOLL_LAYER_CPU_NORM_LRN_CPU_H
#define QUOLL_LAYER_CPU_NORM_LRN_CPU_H

#include "layer/cpu/common/kernel_set.h"
#include "layer/norm/lrn.h"

namespace quoll {

// LRN across the channels of a 3-D blob runs on a kernel; the output has the elempack of the input.
// Everything else runs on the reference.
class LRNCpu : public LRN {
public:
    LRNCpu();
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    bool has_kernel() const { return region_type == 0 && !has_negative_powers(); }

    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
