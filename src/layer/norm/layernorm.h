#ifndef QUOLL_LAYER_LAYERNORM_H
#define QUOLL_LAYER_LAYERNORM_H

#include "layer/common/schema.h"

namespace quoll {

// y = (x - mean) / sqrt(var + eps) * gamma + beta over the innermost axes that make up affine_size
// values: a row (w), w * h of a 3-D or 4-D blob, w * h * d of a 4-D one, or the whole blob. Each of
// these values has its own gamma and beta. Without affine, if no axes match affine_size, rows are
// normalised in 1-D and 2-D blobs and channels in the others.
class LayerNorm : public Operator<LayerNorm> {
public:
    LayerNorm();
    static void params(LayerNorm& s, ParamVisitor& v);
    static void weights(LayerNorm& s, WeightVisitor& v);
    static int shape(const LayerNorm& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int affine_size;
    float eps;
    int affine;
    Mat gamma_data;
    Mat beta_data;
};

}  // namespace quoll

#endif
