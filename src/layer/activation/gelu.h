#ifndef QUOLL_LAYER_GELU_H
#define QUOLL_LAYER_GELU_H

#include "layer/common/activation.h"
#include "layer/common/elementwise.h"

namespace quoll {

// y = x * Phi(x), where Phi is the cumulative distribution function of the normal distribution;
// with fast_gelu the approximation 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) of Hendrycks
// and Gimpel (2016).
class GELU : public ElementwiseOperator<GELU> {
public:
    static void params(GELU& s, ParamVisitor& v);
    float value(float x) const { return evaluate<activations::AnyGelu>(x, fast_gelu ? 1.f : 0.f); }
    Activation as_activation() const override { return {kActivationGelu, fast_gelu ? 1.f : 0.f}; }

    int fast_gelu = 0;
};

}  // namespace quoll

#endif
