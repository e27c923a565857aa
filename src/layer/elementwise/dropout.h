#ifndef QUOLL_LAYER_DROPOUT_H
#define QUOLL_LAYER_DROPOUT_H

#include "layer/common/elementwise.h"

namespace quoll {

// y = x * scale, which is what remains of dropout at inference. With a scale of 1 the values may be
// of any type.
class Dropout : public ElementwiseOperator<Dropout> {
public:
    Dropout();
    static void params(Dropout& s, ParamVisitor& v);
    static int shape(const Dropout& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;
    float value(float x) const { return x * scale; }

    float scale;
};

}  // namespace quoll

#endif
