#ifndef QUOLL_LAYER_REQUANTIZE_H
#define QUOLL_LAYER_REQUANTIZE_H

#include "layer/common/channel_factors.h"

namespace quoll {

// s32 to s8: activation(x * scale_in + bias) * scale_out, rounded half away from zero and clamped
// to [-127, 127]. An f32 input is taken to hold s32, as by Dequantize.
class Requantize : public Operator<Requantize> {
public:
    Requantize();
    static void params(Requantize& s, ParamVisitor& v);
    static void weights(Requantize& s, WeightVisitor& v);
    static int shape(const Requantize& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    int scale_in_data_size = 1;
    int scale_out_data_size = 1;
    int bias_data_size = 0;
    int activation_type = 0;
    Mat activation_params;
    Mat scale_in_data;
    Mat scale_out_data;
    Mat bias_data;
};

}  // namespace quoll

#endif
