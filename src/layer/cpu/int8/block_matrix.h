// Rows of f32 times a constant matrix whose weights are 16-bit floats, or small integers with a
// scale for each block (block_quant.h): few rows by kernels that unpack weights in registers,
// many by the gemm kernels on panels that are unpacked as they go.
#ifndef QUOLL_LAYER_CPU_INT8_BLOCK_MATRIX_H
#define QUOLL_LAYER_CPU_INT8_BLOCK_MATRIX_H

#include <vector>

#include "layer/common/block_quant.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/gemm/product_plan.h"
#include "layer/cpu/int8/int8.h"

namespace quoll {

class BlockMatrix {
public:
    // The n columns of k weights each that unpack_row reads. Logs for `layer` and returns a
    // negative code.
    int create(const Layer& layer, const BlockQuant& quant, const Mat& packed, const Mat& scales,
               const Mat& zeros, const Mat& inputs, int n, int k);
    // f32 weights, value (k, n) at weights[n * n_step + k * k_step], kept as f16 or bf16.
    int create(const Layer& layer, DType storage, const float* weights, size_t n_step,
               size_t k_step, int n, int k);
    bool created() const { return kernels_ != nullptr; }
    // c[i * c_row + j] = row i of a, which begins at a + i * a_row, by column j.
    int multiply(const float* a, size_t a_row, int m, float* c, size_t c_row,
                 const Option& opt) const;

private:
    size_t panel_k_groups() const { return (size_t)k_ * bits_ / 32 * int8_->lanes; }
    int blocks() const { return (k_ + block_ - 1) / block_; }
    int reserve(const Layer& layer, int n, int k, int64_t blocks, size_t scale_bytes);
    void pack_column(const BlockQuant& quant, const Mat& packed, const Mat& scales, int j, int k);
    size_t scale_at(int j, int block) const;
    BlockTile panel(size_t p) const;
    // [blocks, a.h]: the sums of a's values in each block; empty where no zero points need them.
    int sum_blocks(const Mat& a, const Option& opt, Mat* sums) const;
    int make_digits(const Mat& a, const Option& opt, Mat* memory,
                    std::vector<BlockDigits>* digits) const;
    void one_row(const Mat& sums, const BlockDigits& digits, int count, size_t pair,
                 float* c) const;
    void few_rows(const Mat& a, const Mat& sums, const std::vector<BlockDigits>& digits, int m,
                  size_t p, float* c, size_t c_row) const;
    void unpack(size_t n0, size_t width, float* out) const;
    int multiply_on_tiles(const GemmMatrix& matrix, const ProductPlan& plan, int threads,
                          const Option& opt) const;
    // Left empty where a value is infinite or NaN.
    int make_bytes(const Mat& a, const Option& opt, int threads, Mat* memory,
                   std::vector<ByteRows>* bytes) const;
    void byte_rows(const std::vector<ByteRows>& bytes, const Mat& sums, int m, size_t p, float* c,
                   size_t c_row) const;
    void many_rows(const Mat& a, int m, size_t p, float* unpacked, float* c, size_t c_row) const;

    const KernelSet* kernels_ = nullptr;
    const Int8Kernels* int8_ = nullptr;
    int n_ = 0, inputs_count_ = 0, k_ = 0;  // k_: rounded up to whole k-groups
    int bits_ = 0, block_ = 0;              // 4 or 8; 16: the half_ kernels
    int form_ = 0;                          // index of the kernels
    // k-groups: [columns / (2 lanes)][k_ / (32 / bits)][2 lanes]; [columns / lanes][k_ / 2][lanes]
    // of 16 bits.
    Mat weights_;
    // What blocks are multiplied by, [columns / (2 lanes)][blocks][2 lanes]: f32 or f16.
    Mat scales_;
    Mat offsets_;  // empty, or what the zero points leave, as scales_
    Mat inputs_;   // empty, or a factor for each value of a row
    Mat zeros_;    // a bias for the gemm kernels
};

}  // namespace quoll

#endif
