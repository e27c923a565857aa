#ifndef QUOLL_LAYER_PRELU_H
#define QUOLL_LAYER_PRELU_H

#include "layer/common/schema.h"

namespace quoll {

// y = x if x > 0, else slope * x, with one slope for all or one per channel (the outermost axis).
class PReLU : public Operator<PReLU> {
public:
    PReLU();
    static void params(PReLU& s, ParamVisitor& v);
    static void weights(PReLU& s, WeightVisitor& v);
    static int shape(const PReLU& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int num_slope;
    Mat slope_data;
};

}  // namespace quoll

#endif
