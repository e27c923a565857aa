#ifndef QUOLL_LAYER_CPU_INNERPRODUCT_INNERPRODUCT_CPU_H
#define QUOLL_LAYER_CPU_INNERPRODUCT_INNERPRODUCT_CPU_H

#include <memory>

#include "layer/cpu/common/packing.h"
#include "layer/cpu/gemm/stored_matrix.h"
#include "layer/cpu/int8/int8_matrix.h"
#include "layer/cpu/unary/fused_activation.h"
#include "layer/nn/innerproduct.h"

namespace quoll {

// A matrix product with weights packed for the gemm kernels; create_pipeline lets weight_data go.
// int8 arithmetic has int8 kernels; where an int32 might not hold a sum it runs on the reference.
// Outputs have elempack 1.
class InnerProductCpu : public InnerProduct {
public:
    typedef InnerProductCpu Class;
    bool is_a(const void* id) const override {
        return id == class_id<InnerProductCpu>() || InnerProduct::is_a(id);
    }
    InnerProductCpu();
    int create_pipeline(const Option& opt) override;
    // Its algorithm() is that of a MatrixPlan, "row" (of bf16 weights), or Int8Matrix::kernels().
    int plan(const std::vector<Shape>& bottoms, const Option& opt,
             std::shared_ptr<const LayerPlan>* plan) const override;
    int forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        bool inplace, const Option& opt) const override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    struct Plan;
    int make_plan(const std::vector<Shape>& bottoms, const Option& opt, Plan* p) const;
    int run(const Plan& p, const Mat& bottom, Mat* top, const Option& opt) const;
    int multiply(const Plan& p, const Mat& rows, Mat& out, const Option& opt) const;
    GemmMatrix product(int rows, DType dtype, bool reduced) const;

    StoredMatrix stored_;                           // with bf16 storage
    std::shared_ptr<const ConstantMatrix> matrix_;  // without
    const KernelSet* kernels_ = nullptr;
    FusedActivation activation_;
    Int8Matrix int8_;      // when int8_scale_term is set
    Int8Matrix low_int8_;  // of 16-bit inputs: by their low bytes, while int8_ is by the high ones
};

}  // namespace quoll

#endif
