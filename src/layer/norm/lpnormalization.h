#ifndef QUOLL_LAYER_LPNORMALIZATION_H
#define QUOLL_LAYER_LPNORMALIZATION_H

#include "layer/common/tensor.h"

namespace quoll {

// y = x / |x|, where |x| is the sum of the absolute values (p = 1) or the Euclidean length (p = 2)
// along one axis; 0 where |x| is 0. ONNX LpNormalization.
class LpNormalization : public TensorOperator<LpNormalization> {
public:
    static void params(LpNormalization& s, ParamVisitor& v);
    static int shape(const LpNormalization& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = -1;
    int p = 2;
};

}  // namespace quoll

#endif
