#ifndef QUOLL_LAYER_GEMM_H
#define QUOLL_LAYER_GEMM_H

#include "layer/common/block_quant.h"
#include "layer/common/schema.h"

namespace quoll {

// y = alpha (A B + beta C) for A of M rows and K columns, B of K rows and N columns. Matrices that
// are not constant are inputs, in the order A, B, C; C may be missing. A matrix is a 2-D blob, a
// 3-D one with h = 1 (its channels are the rows), or a 1-D one (one row). Output: [M][N], or [N][M]
// with output_transpose; with output_N1M its rows are channels.
class Gemm : public Operator<Gemm> {
public:
    Gemm();
    static void params(Gemm& s, ParamVisitor& v);
    static void weights(Gemm& s, WeightVisitor& v);
    static int shape(const Gemm& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

    float alpha, beta;
    int transA, transB;  // 1: the blob holds the transpose
    int constantA, constantB, constantC;
    int constantM, constantN, constantK;
    int constant_broadcast_type_C;  // of the constant C; see Broadcast
    int output_N1M;
    int output_elempack, output_elemtype;  // hints, not needed here
    int output_transpose;
    int quantize_term;
    int quantize_zeros;                                     // 1: blocks of weights have zero points
    int constant_TILE_M, constant_TILE_N, constant_TILE_K;  // hints, not needed here

    Mat A_data, B_data, C_data;
    Mat A_data_int8_scales;      // [M]
    Mat B_data_int8_scale;       // [1]
    Mat B_data_quantize_scales;  // [N][blocks of K], see BlockQuant
    Mat B_data_quantize_zeros;   // the same, with quantize_zeros
    Mat B_data_input_scales;     // [K]

    enum Broadcast { kNone = -1, kScalar, kRow1, kRow, kFull, kColumn };

    // A matrix in a blob: value (row, column) of A, or of B, at data[row * row_step + column *
    // step].
    struct Operand {
        const Mat* blob;
        int rows, columns;
        size_t row_step, column_step;
    };
    // The product for given inputs.
    struct Product {
        int m, n, k;
        Operand a, b;       // blob is null for a constant one that was let go
        const Mat* c;       // null: none
        Broadcast c_shape;  // C is: one value, a column (kRow1, kRow), a row (kColumn), or full
        size_t top_step;    // of the output's rows (channels with output_N1M)

        // The value of C at (i, j), without beta.
        float c_value(int i, int j) const {
            const float* p = *c;
            return c_shape == kScalar   ? p[0]
                   : c_shape == kFull   ? p[(size_t)i * n + j]
                   : c_shape == kColumn ? p[j]
                                        : p[i];
        }
    };
    // For inputs of these sizes, without the blobs.
    int describe(const std::vector<Shape>& in, Product* product) const;

protected:
    // Checks the inputs and creates the output.
    int prepare(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt,
                Product* product) const;

private:
    int product_of(const std::vector<Mat>& bottoms, const Mat& top, Product* p) const;
    struct Sizes {
        int m, n, k;
        Broadcast c_shape;
        int a, b, c;  // index of the input, -1: constant (or no C)
    };
    int describe(const std::vector<Shape>& in, Product* product, Sizes* sizes) const;
    int sizes(const std::vector<Shape>& in, Sizes* out) const;
    int matrix_size(const Shape& in, const char* what, bool transposed, int* rows,
                    int* columns) const;
    int forward_blocks(const Product& p, Mat& top, const Option& opt) const;
    int forward_int8(const Product& p, Mat& top, const Option& opt) const;
    void store(const Product& p, Mat& top, int i, int j, float product) const;
};

}  // namespace quoll

#endif
