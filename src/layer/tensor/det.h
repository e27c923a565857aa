#ifndef QUOLL_LAYER_DET_H
#define QUOLL_LAYER_DET_H

#include "layer/common/tensor.h"

namespace quoll {

// The determinants of the matrices in the two innermost axes. ONNX Det.
class Det : public TensorOperator<Det> {
public:
    static int shape(const Det& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
};

}  // namespace quoll

#endif
