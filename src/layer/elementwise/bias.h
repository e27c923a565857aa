#ifndef QUOLL_LAYER_BIAS_H
#define QUOLL_LAYER_BIAS_H

#include "layer/common/schema.h"

namespace quoll {

// y = x + bias, with one bias per channel (the axis c). 1-D and 2-D blobs have one channel and so
// one bias, as in ncnn.
class Bias : public Operator<Bias> {
public:
    Bias();
    static void params(Bias& s, ParamVisitor& v);
    static void weights(Bias& s, WeightVisitor& v);
    static int shape(const Bias& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int bias_data_size;
    Mat bias_data;
};

}  // namespace quoll

#endif
