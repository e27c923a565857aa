// A weight matrix packed for the gemm kernels, with its bias.
#ifndef QUOLL_LAYER_CPU_RECURRENT_PACKED_MATRIX_H
#define QUOLL_LAYER_CPU_RECURRENT_PACKED_MATRIX_H

#include "layer/cpu/gemm/gemm_run.h"

namespace quoll {

class PackedMatrix {
public:
    // weight: row-major, rows x columns; bias: of the rows from first_bias on (null: none). A
    // negative code when memory runs out.
    int create(const KernelSet& kernels, const float* weight, int rows, int columns,
               const float* bias, int first_bias) {
        kernels_ = &kernels;
        rows_ = rows, columns_ = columns;
        const GemmKernels& gemm = *kernels.gemm;
        // Rows of one vector: a panel is a whole number of them, and its floats may exceed an int.
        panels_.create(gemm.lanes, (int)(gemm_packed_size(gemm, rows, columns) / gemm.lanes));
        bias_.create((int)gemm_bias_size(gemm, rows));
        if (panels_.empty() || bias_.empty()) return kOutOfMemory;
        gemm_pack(gemm, weight, columns, false, rows, columns, panels_);
        bias_.fill(0.f);
        for (int i = first_bias; bias && i < rows; i++) bias_[i] = bias[i - first_bias];
        return kOk;
    }

    // out[i] = weight x[i] + bias for `count` rows of x, x_row apart; out's rows are out_row apart.
    void multiply(const float* x, ptrdiff_t x_row, int count, float* out, ptrdiff_t out_row,
                  const Option& opt) const {
        GemmMatrix product = {};
        product.kernels = kernels_;
        product.a = x;
        product.a_row = x_row, product.a_k = 1;
        product.m = count, product.n = rows_, product.k = columns_;
        product.b = panels_, product.bias = bias_;
        product.c = out;
        product.c_row = out_row;
        product.c_pack = rows_;
        gemm_matrix(product, threads_for(opt, (double)count * rows_ * columns_));
    }

    int rows() const { return rows_; }
    int columns() const { return columns_; }

private:
    const KernelSet* kernels_ = nullptr;
    int rows_ = 0, columns_ = 0;
    Mat panels_, bias_;
};

}  // namespace quoll

#endif
