#ifndef QUOLL_LAYER_MISH_H
#define QUOLL_LAYER_MISH_H

#include "layer/common/activation.h"
#include "layer/common/elementwise.h"

namespace quoll {

// y = x * tanh(log(1 + exp(x))).
class Mish : public ElementwiseOperator<Mish> {
public:
    float value(float x) const { return evaluate<activations::Mish>(x); }
    Activation as_activation() const override { return Activation::plain(kActivationMish); }
};

}  // namespace quoll

#endif
