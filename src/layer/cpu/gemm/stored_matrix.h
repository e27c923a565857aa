// Products with a constant matrix, in nets with bf16 storage.
#ifndef QUOLL_LAYER_CPU_GEMM_STORED_MATRIX_H
#define QUOLL_LAYER_CPU_GEMM_STORED_MATRIX_H

#include <memory>
#include <mutex>

#include "layer/cpu/gemm/constant_matrix.h"

namespace quoll {

// The weights are kept as bf16, in the panels by which single rows are multiplied. The first
// product of more rows makes a ConstantMatrix of them.
class StoredMatrix {
public:
    // weight: [n][k]; bias: n floats, or null. Logs for `layer` and returns a negative code.
    int create(const Layer& layer, const float* weight, int n, int k, const float* bias,
               const Option& opt);
    bool created() const { return !panels_.empty(); }
    void release();
    // out[i] = activation(bias[i] + sum over j of weight[i][j] x[j]), of f32 values of x.
    void multiply_row(const float* x, float* out, const FusedActivation& activation,
                      const Option& opt) const;
    // The matrix for more rows. May be called by any thread.
    int rows_matrix(const Layer& layer, const Option& opt,
                    std::shared_ptr<const ConstantMatrix>* matrix) const;

private:
    const KernelSet* kernels_ = nullptr;
    int n_ = 0, k_ = 0;
    bool pairs_ = false;  // rows of a panel lie interleaved by twos
    Mat panels_, bias_;

    mutable std::mutex lock_;  // of what follows
    mutable std::shared_ptr<const ConstantMatrix> matrix_;
};

}  // namespace quoll

#endif
