#ifndef QUOLL_LAYER_MATMULINTEGER_H
#define QUOLL_LAYER_MATMULINTEGER_H

#include "layer/common/schema.h"

namespace quoll {

// Product of matrices of 8-bit integers with s32 results (ONNX MatMulInteger): sums of
// (a - a_zero_point) (b - b_zero_point) over the last axis of a and the last but one of b. Axes
// before these are broadcast by NumPy's rules; an operand of one axis is a row (a) or a column (b),
// and the result lacks that axis. An operand has one zero point, or one per row of a or column of
// b, or a blob like a whose last axis is 1 (like b whose last but one is 1). Inputs: a, b unless it
// is weight_data, then the zero points that are inputs according to the parameters. With ranged, a
// is f32 and quantised with the scale and zero point of its range (ONNX DynamicQuantizeLinear), and
// the result is f32: the sums times that scale and the column's, plus the column's bias. With
// top_factor the result is s8, rounded as affine8.h describes from the exact sums times top_factor.
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
    Mat a_zero_points, b_zero_points;  // s32: none (0), one, or one per row or column
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
    // The blobs and zero points (empty: none) that inputs and parameters give.
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
