#ifndef QUOLL_LAYER_MATMUL_H
#define QUOLL_LAYER_MATMUL_H

#include "layer/common/schema.h"

namespace quoll {

// y = A B for the matrices (w, h) of two blobs of 1 to 4 axes, as in numpy.matmul: outer axes are
// broadcast; a 1-D A is a row and a 1-D B a column, and the result lacks that axis. With transB the
// matrices of B are given as [N][K] (no effect on a 1-D B).
class MatMul : public Operator<MatMul> {
public:
    MatMul();
    static void params(MatMul& s, ParamVisitor& v);
    static void weights(MatMul& s, WeightVisitor& v);
    static int shape(const MatMul& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

    int transB;

    // The matrices of an operand: value (row, column) of matrix (c, d) at
    // data[c * c_step + d * d_step + row * row_step + column * column_step].
    struct Operand {
        int rows, columns;
        int c, d;
        size_t row_step, column_step, c_step, d_step;

        size_t at(int q, int z) const {
            return (c == 1 ? 0 : q * c_step) + (d == 1 ? 0 : z * d_step);
        }
    };
    struct Product {
        int m, n, k;
        int c, d;  // matrices of the output
        Operand a, b;
    };
    // For inputs of these sizes; steps along c are left 0.
    int product_of(const std::vector<Shape>& in, Product* p) const;

protected:
    // Checks the inputs and creates the output; `result`, a view of it, has an h and a w for the
    // matrices' rows and columns even where tops[0] lacks them.
    int prepare(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt,
                Product* product, Operand* result) const;

private:
    Shape output_shape(const std::vector<Shape>& in, const Product& p) const;
};

}  // namespace quoll

#endif
