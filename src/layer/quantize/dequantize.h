#ifndef QUOLL_LAYER_DEQUANTIZE_H
#define QUOLL_LAYER_DEQUANTIZE_H

#include "layer/common/channel_factors.h"

namespace quoll {

// s32 to f32: x * scale + bias. An f32 input is taken to hold the bits of s32, since a Mat over an
// application's ints is tagged f32.
class Dequantize : public Operator<Dequantize> {
public:
    Dequantize();
    static void params(Dequantize& s, ParamVisitor& v);
    static void weights(Dequantize& s, WeightVisitor& v);
    static int shape(const Dequantize& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    int scale_data_size = 1;
    int bias_data_size = 0;
    Mat scale_data;
    Mat bias_data;
};

}  // namespace quoll

#endif
