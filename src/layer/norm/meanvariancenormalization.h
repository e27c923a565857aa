#ifndef QUOLL_LAYER_MEANVARIANCENORMALIZATION_H
#define QUOLL_LAYER_MEANVARIANCENORMALIZATION_H

#include "layer/common/tensor.h"

namespace quoll {

// y = (x - mean) / (sqrt(variance) + 1e-9) with mean and variance over the given axes. ONNX
// MeanVarianceNormalization (1e-9 is from the operator's function body).
class MeanVarianceNormalization : public TensorOperator<MeanVarianceNormalization> {
public:
    static void params(MeanVarianceNormalization& s, ParamVisitor& v);
    static int shape(const MeanVarianceNormalization& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    Mat axes;
};

}  // namespace quoll

#endif
