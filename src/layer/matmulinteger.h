#ifndef QUOLL_LAYER_MATMULINTEGER_H
#define QUOLL_LAYER_MATMULINTEGER_H

#include "schema.h"

namespace quoll {

// Product of matrices of 8-bit integers with s32 results (ONNX MatMulInteger): sums of (a -
// a_zero_point) (b - b_zero_point) over the last axis of a and the last but one of b; axes before
// them are repeated as NumPy does, operands of one axis are a row and a column that the result does
// not have. Zero points are one for all, one a row of a or column of b, or a blob like a whose last
// axis (like b whose last but one) is 1. Inputs: a, b, then the zero points that the parameters say
// are there.
class MatMulInteger : public Operator<MatMulInteger> {
public:
    MatMulInteger();
    static void params(MatMulInteger& s, ParamVisitor& v);
    static void weights(MatMulInteger& s, WeightVisitor& v);
    static int shape(const MatMulInteger& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

    int a_unsigned, b_unsigned;  // 1: the bytes of an s8 blob are u8
    int a_zero_point_input, b_zero_point_input;
    Mat a_zero_points, b_zero_points;  // s32: none (0), one, or one a row or column
};

}  // namespace quoll

#endif
