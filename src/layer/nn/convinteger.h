#ifndef QUOLL_LAYER_CONVINTEGER_H
#define QUOLL_LAYER_CONVINTEGER_H

#include "layer/common/window_fields.h"

namespace quoll {

// Convolution of 8-bit integers with s32 results (ONNX ConvInteger): sums of
// (x - x_zero_point) (w - w_zero_point), where the padding is x_zero_point. x is [c, h, w] of s8 or
// u8. w has one zero point, or one per output channel. Inputs: x, then with dynamic_weight
// w [out, in / group, kh, kw], then the zero points of x and w if the parameters say that they are
// inputs.
class ConvInteger : public Operator<ConvInteger>, public WindowFields {
public:
    ConvInteger();
    static void params(ConvInteger& s, ParamVisitor& v);
    static void weights(ConvInteger& s, WeightVisitor& v);
    static int shape(const ConvInteger& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;

    int num_output;
    int weight_data_size;
    int group;
    int weight_unsigned;  // 1: the bytes of weight_data are u8
    int dynamic_weight;
    int x_zero_point_input, w_zero_point_input;
    int x_zero_point;
    Mat w_zero_points;  // s32: none (0), one, or num_output

    Mat weight_data;  // s8: [num_output][in / group][kernel_h][kernel_w]

private:
    struct Geometry;
    int geometry(const std::vector<Shape>& in, Geometry* g) const;
    int check_zero_points(const std::vector<Shape>& in, const Geometry& g) const;
};

}  // namespace quoll

#endif
