#ifndef QUOLL_LAYER_HARDMAX_H
#define QUOLL_LAYER_HARDMAX_H

#include "layer/common/tensor.h"

namespace quoll {

// 1 at the first largest value along one axis, 0 elsewhere. ONNX Hardmax.
class Hardmax : public TensorOperator<Hardmax> {
public:
    static void params(Hardmax& s, ParamVisitor& v);
    static int shape(const Hardmax& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = -1;
};

}  // namespace quoll

#endif
