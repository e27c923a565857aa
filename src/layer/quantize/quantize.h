#ifndef QUOLL_LAYER_QUANTIZE_H
#define QUOLL_LAYER_QUANTIZE_H

#include "layer/common/channel_factors.h"

namespace quoll {

// f32 to s8: x * scale, rounded half away from zero and clamped to [-127, 127].
class Quantize : public Operator<Quantize> {
public:
    Quantize();
    static void params(Quantize& s, ParamVisitor& v);
    static void weights(Quantize& s, WeightVisitor& v);
    static int shape(const Quantize& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    int scale_data_size = 1;
    Mat scale_data;
};

}  // namespace quoll

#endif
