#ifndef QUOLL_LAYER_SWISH_H
#define QUOLL_LAYER_SWISH_H

#include "layer/common/activation.h"
#include "layer/common/elementwise.h"

namespace quoll {

// y = x / (1 + exp(-beta * x)); with beta 1 also called SiLU, with 1.702 QuickGELU.
class Swish : public ElementwiseOperator<Swish> {
public:
    static void params(Swish& s, ParamVisitor& v);
    float value(float x) const { return evaluate<activations::Swish>(x, beta); }
    Activation as_activation() const override {
        return beta == 1.f ? Activation::plain(kActivationSwish) : Activation();
    }

    float beta = 1.f;
};

}  // namespace quoll

#endif
