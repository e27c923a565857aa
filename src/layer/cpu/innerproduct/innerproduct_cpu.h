#ifndef QUOLL_LAYER_CPU_INNERPRODUCT_INNERPRODUCT_CPU_H
#define QUOLL_LAYER_CPU_INNERPRODUCT_INNERPRODUCT_CPU_H

#include <atomic>
#include <mutex>

#include "layer/cpu/gemm/constant_matrix.h"
#include "layer/cpu/int8/int8_matrix.h"
#include "layer/cpu/packing.h"
#include "layer/innerproduct.h"

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
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    // Of int8 weights, as Int8Matrix::kernels(); "" for others.
    const char* int8_kernels() const { return int8_.created() ? int8_.kernels() : ""; }

    // Of others, as ConstantMatrix::algorithm().
    const char* algorithm() const { return matrix_.algorithm(); }

private:
    int store_weights(const Option& opt);
    int multiply_row(const float* in, float* out, const Option& opt) const;
    // matrix_, made of the stored weights when the first product wants it.
    int widened_matrix(const Option& opt) const;

    mutable ConstantMatrix matrix_;
    mutable std::mutex lock_;
    mutable std::atomic<bool> has_matrix_{false};
    // Panels of the gemm kernels as bf16, for single rows: with bf16 storage the weights' only form
    // until a product has more rows.
    Mat stored_, stored_bias_;
    const KernelSet* kernels_ = nullptr;
    FusedActivation activation_;
    Int8Matrix int8_;  // when int8_scale_term is set
};

}  // namespace quoll

#endif
