// A weight matrix with its bias, packed for products of one row and of many.
#ifndef QUOLL_LAYER_CPU_RECURRENT_PACKED_MATRIX_H
#define QUOLL_LAYER_CPU_RECURRENT_PACKED_MATRIX_H

#include <algorithm>
#include <vector>

#include "layer/cpu/gemm/stored_matrix.h"
#include "layer/cpu/recurrent/recurrent.h"

namespace quoll {

inline const RecurrentKernels& recurrent_kernels_for(const KernelSet& kernels, const Option& opt) {
    const RecurrentKernels* const rounded = kernels.recurrent->rounded;
    return opt.use_bf16_storage && rounded ? *rounded : *kernels.recurrent;
}

class PackedMatrix {
public:
    // weight: row-major, rows x columns; bias: of the rows from first_bias on (null: none). Logs
    // for `layer` and returns a negative code when memory runs out.
    int create(const Layer& layer, const float* weight, int rows, int columns, const float* bias,
               int first_bias, const Option& opt) {
        rows_ = rows, columns_ = columns;
        std::vector<float> whole(rows, 0.f);
        if (bias) std::copy_n(bias, rows - first_bias, whole.begin() + first_bias);
        if (opt.use_bf16_storage)
            return stored_.create(layer, weight, rows, columns, whole.data(), opt);
        kernels_ = &host_kernel_set();
        const GemmKernels& gemm = *kernels_->gemm;
        panels_ = gemm_packed(gemm, weight, columns, false, rows, columns);
        bias_ = product_bias(*kernels_, whole.data(), rows);
        if (!panels_.empty() && !bias_.empty()) return kOk;
        layer.fail("out of memory for %d x %d weights", rows, columns);
        return kOutOfMemory;
    }

    // out[i] = weight x[i] + bias for `count` rows of x, x_row apart; out's rows are dense.
    int multiply(const Layer& layer, const float* x, ptrdiff_t x_row, int count, float* out,
                 const Option& opt) const {
        if (stored_.created() && count == 1) {
            stored_.multiply_row(x, out, FusedActivation(), opt);
            return kOk;
        }
        GemmMatrix product = {};
        product.a = x;
        product.a_row = x_row, product.a_k = 1;
        product.m = count;
        product.c = out;
        product.c_row = product.c_pack = rows_;
        if (stored_.created()) {
            std::shared_ptr<const ConstantMatrix> matrix;
            QUOLL_RETURN_IF_ERROR(stored_.rows_matrix(layer, opt, &matrix));
            return matrix->multiply(product, opt);
        }
        product.kernels = kernels_;
        product.n = rows_, product.k = columns_;
        product.b = panels_, product.bias = bias_;
        gemm_matrix(product, threads_for(opt, (double)count * rows_ * columns_));
        return kOk;
    }

    int rows() const { return rows_; }
    int columns() const { return columns_; }

private:
    const KernelSet* kernels_ = nullptr;
    int rows_ = 0, columns_ = 0;
    Mat panels_, bias_;
    StoredMatrix stored_;  // in their place, with bf16 storage
};

}  // namespace quoll

#endif
