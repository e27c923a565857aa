#ifndef QUOLL_LAYER_CUMSUM_H
#define QUOLL_LAYER_CUMSUM_H

#include "layer/common/tensor.h"

namespace quoll {

// out[i] = in[0] + ... + in[i] along an axis (ints wrap). The axis is the second input (s32), if
// there is one, or a parameter. ONNX CumSum.
class CumSum : public TensorOperator<CumSum> {
public:
    static void params(CumSum& s, ParamVisitor& v);
    static int shape(const CumSum& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = 0;
    int exclusive = 0;  // 1: without in[i]
    int reverse = 0;    // 1: from the end
};

}  // namespace quoll

#endif
