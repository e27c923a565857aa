#ifndef QUOLL_LAYER_TRILU_H
#define QUOLL_LAYER_TRILU_H

#include "layer/common/tensor.h"

namespace quoll {

// The upper or lower triangle of the two innermost axes, zeros elsewhere. It includes diagonal k,
// which is a parameter or input 1 (s32). ONNX Trilu.
class Trilu : public TensorOperator<Trilu> {
public:
    Trilu() { set_any_storage(*this); }
    static void params(Trilu& s, ParamVisitor& v);
    static int shape(const Trilu& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int upper = 1;
    int k = 0;  // positive: above the main diagonal
};

}  // namespace quoll

#endif
