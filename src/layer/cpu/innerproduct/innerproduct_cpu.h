#ifndef QUOLL_LAYER_CPU_INNERPRODUCT_INNERPRODUCT_CPU_H
#define QUOLL_LAYER_CPU_INNERPRODUCT_INNERPRODUCT_CPU_H

#include "layer/cpu/gemm/product_plan.h"
#include "layer/cpu/int8/int8_matrix.h"
#include "layer/cpu/packing.h"
#include "layer/innerproduct.h"

namespace quoll {

// A matrix product with weights packed for the gemm kernels; create_pipeline lets weight_data go.
// int8 arithmetic has int8 kernels; where an int32 might not hold a sum it runs on the reference.
// Outputs have elempack 1.
class InnerProductCpu : public InnerProduct {
public:
    InnerProductCpu();
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    // Of int8 weights, as Int8Matrix::kernels(); "" for others.
    const char* int8_kernels() const { return int8_.created() ? int8_.kernels() : ""; }

    // Of others, as ConstantMatrix::algorithm().
    const char* algorithm() const { return matrix_.algorithm(); }

private:
    ConstantMatrix matrix_;
    FusedActivation activation_;
    Int8Matrix int8_;  // when int8_scale_term is set
};

}  // namespace quoll

#endif
