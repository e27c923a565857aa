#ifndef QUOLL_LAYER_BATCHNORM_H
#define QUOLL_LAYER_BATCHNORM_H

#include "layer/common/schema.h"

namespace quoll {

// y = (x - mean) / sqrt(var + eps) * slope + bias, with one value of each per channel (the
// outermost axis). A standard deviation of 0 counts as 0.0001.
class BatchNorm : public Operator<BatchNorm> {
public:
    BatchNorm();
    static void params(BatchNorm& s, ParamVisitor& v);
    static void weights(BatchNorm& s, WeightVisitor& v);
    static int shape(const BatchNorm& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_model(const ModelBin& mb) override;
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int channels;
    float eps;

    Mat slope_data;
    Mat mean_data;
    Mat var_data;
    Mat bias_data;
    // y = b * x + a, made by load_model.
    Mat a_data;
    Mat b_data;
    // max(0, y): a ReLU that the pass fuse_norm_activation found behind the layer. Files have none.
#if defined(__x86_64__) || defined(__i386__)
    static constexpr bool kTakesRelu = true;
#else
    static constexpr bool kTakesRelu = false;  // the library has to be small
#endif
    bool relu = false;
};

}  // namespace quoll

#endif
