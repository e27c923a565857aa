#ifndef QUOLL_LAYER_GROUPNORM_H
#define QUOLL_LAYER_GROUPNORM_H

#include "layer/common/schema.h"

namespace quoll {

// y = (x - mean) / sqrt(var + eps) * gamma + beta with the mean and variance of each group of
// channels (the outermost axis); there is one gamma and one beta per channel.
class GroupNorm : public Operator<GroupNorm> {
public:
    GroupNorm();
    static void params(GroupNorm& s, ParamVisitor& v);
    static void weights(GroupNorm& s, WeightVisitor& v);
    static int shape(const GroupNorm& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int group;
    int channels;
    float eps;
    int affine;
    Mat gamma_data;
    Mat beta_data;
};

}  // namespace quoll

#endif
