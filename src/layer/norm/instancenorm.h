#ifndef QUOLL_LAYER_INSTANCENORM_H
#define QUOLL_LAYER_INSTANCENORM_H

#include "layer/common/activation.h"
#include "layer/common/schema.h"

namespace quoll {

// y = (x - mean) / sqrt(var + eps) * gamma + beta with the mean and variance of each channel, the
// axis c (1-D and 2-D blobs have one, which takes the first gamma and beta).
class InstanceNorm : public Operator<InstanceNorm> {
public:
    InstanceNorm();
    static void params(InstanceNorm& s, ParamVisitor& v);
    static void weights(InstanceNorm& s, WeightVisitor& v);
    static int shape(const InstanceNorm& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int channels;
    float eps;
    int affine;
    Mat gamma_data;
    Mat beta_data;
    // Of the results: what the pass fuse_norm_activation found behind the layer. Files have none.
    Activation activation;
    // Int8 values with zero points that come in and go out, where the pass fuse_norm_rounding found
    // them around the layer; scale 0: floats. Files have none.
    struct Bytes {
        float scale = 0.f, top_scale = 1.f;
        int zero_point = 0, top_zero_point = 0;
        explicit operator bool() const { return scale != 0.f; }
    };
    Bytes bytes;
};

}  // namespace quoll

#endif
