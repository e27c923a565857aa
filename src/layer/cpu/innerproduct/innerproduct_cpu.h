#ifndef QUOLL_LAYER_CPU_INNERPRODUCT_INNERPRODUCT_CPU_H
#define QUOLL_LAYER_CPU_INNERPRODUCT_INNERPRODUCT_CPU_H

#include "layer/cpu/packing.h"
#include "layer/innerproduct.h"

namespace quoll {

// A matrix product with weights packed for the gemm kernels; create_pipeline lets weight_data go.
// int8 arithmetic runs on the reference, which keeps it. Outputs have elempack 1.
class InnerProductCpu : public InnerProduct {
public:
    InnerProductCpu();
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

private:
    const KernelSet* kernels_;  // null: the reference runs
    Mat packed_weight_;         // panels of gemm_pack
    Mat packed_bias_;           // gemm_bias_size floats, zeros without bias
    FusedActivation activation_;
};

}  // namespace quoll

#endif
