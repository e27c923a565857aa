#ifndef QUOLL_LAYER_MVN_H
#define QUOLL_LAYER_MVN_H

#include "layer/common/schema.h"

namespace quoll {

// y = x - mean, divided by (standard deviation + eps) if normalize_variance is set; both are taken
// over each channel or over all values. An input of one or two axes is one channel, and the output
// then has three axes.
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
