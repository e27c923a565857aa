#ifndef QUOLL_LAYER_MEANVARIANCENORMALIZATION_H
#define QUOLL_LAYER_MEANVARIANCENORMALIZATION_H

#include "layer/common/tensor.h"

namespace quoll {

// y = (x - mean) / (sqrt(variance) + 1e-9), mean and variance over some axes. ONNX
// MeanVarianceNormalization (the epsilon is that of its function body).
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
