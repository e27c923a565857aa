#ifndef QUOLL_LAYER_MATMULINTEGER_H
#define QUOLL_LAYER_MATMULINTEGER_H

#include "layer/common/schema.h"

namespace quoll {

// Product of matrices of 8-bit integers with s32 results (ONNX MatMulInteger): sums of (a -
// a_zero_point) (b - b_zero_point) over the last axis of a and the last but one of b; axes before
// them are repeated as NumPy does, operands of one axis are a row and a column that the result does
// not have. Zero points are one for all, one a row of a or column of b, or a blob like a whose last
// axis (like b whose last but one) is 1. Inputs: a, b unless it is weight_data, then the zero
// points that the parameters say are there. ranged: a is f32, quantised with the scale and zero
// point of its range (ONNX DynamicQuantizeLinear), and the result is f32: the sums times that scale
// and the column's, plus the column's bias. top_factor: the result is s8 as affine8.h has it, of
// the sums, which are exact, times top_factor.
class MatMulInteger : public Operator<MatMulInteger> {
public:
    MatMulInteger();
    static void params(MatMulInteger& s, ParamVisitor& v);
    static void weights(MatMulInteger& s, WeightVisitor& v);
    static int shape(const MatMulInteger& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

    int a_unsigned, b_unsigned;  // 1: the bytes of an s8 blob are u8
    int a_zero_point_input, b_zero_point_input;
    Mat a_zero_points, b_zero_points;  // s32: none (0), one, or one a row or column
    int num_output;                    // columns of weight_data; 0: b is an input
    int weight_data_size;
    int ranged, bias_term;
    float top_factor;    // not 0: a's step times b's over the result's
    int top_zero_point;  // of such a result

    Mat weight_data;    // s8 [rows][num_output]
    Mat weight_scales;  // [num_output]
    Mat bias_data;      // [num_output]

protected:
    // A blob as [batch, batch, rows, columns]; steps are 0 on axes that are repeated.
    struct Operand {
        int size[4];
        size_t step[4];

        // cstep: values from channel to channel; not looked at for one or two axes. as_column: one
        // axis is the rows, not the columns.
        Operand(const Shape& s, size_t cstep, bool as_column);
        Operand(const Mat& m, bool as_column);
        size_t at(int i, int j, int k, int l) const {
            return i * step[0] + j * step[1] + k * step[2] + l * step[3];
        }
    };
    // What the inputs and parameters say: blobs, and zero points (empty: none).
    struct Operands {
        Mat a, b, a_zero, b_zero;
    };
    Operands operands(const std::vector<Mat>& bottoms) const;
    int b_rows() const { return weight_data_size / num_output; }
    bool gives_int8() const { return top_factor != 0.f; }

private:
    bool has_weight() const { return num_output > 0; }
    int check_zero_points(const Shape& zero, const Operand& of, const char* name, int summed) const;
    int check_inputs(const std::vector<Shape>& in) const;
};

}  // namespace quoll

#endif
