#ifndef QUOLL_LAYER_MVN_H
#define QUOLL_LAYER_MVN_H

#include "layer/common/schema.h"

namespace quoll {

// x - mean, divided by (standard deviation + eps) if normalize_variance; both of a channel or of
// all. Inputs of one or two axes are one channel, and become three axes.
class MVN : public Operator<MVN> {
public:
    MVN();
    static void params(MVN& s, ParamVisitor& v);
    static void weights(MVN& s, WeightVisitor& v);
    static int shape(const MVN& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    int normalize_variance;
    int across_channels;
    float eps;
};

}  // namespace quoll

#endif
