#ifndef QUOLL_LAYER_RMSNORM_H
#define QUOLL_LAYER_RMSNORM_H

#include "layer/common/schema.h"

namespace quoll {

// y = x / sqrt(mean of x^2 + eps) * gamma over the innermost axes that make up affine_size values,
// as in LayerNorm.
class RMSNorm : public Operator<RMSNorm> {
public:
    RMSNorm();
    static void params(RMSNorm& s, ParamVisitor& v);
    static void weights(RMSNorm& s, WeightVisitor& v);
    static int shape(const RMSNorm& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int affine_size;
    float eps;
    int affine;
    Mat gamma_data;
};

}  // namespace quoll

#endif
