#ifndef QUOLL_LAYER_SIGMOID_H
#define QUOLL_LAYER_SIGMOID_H

#include "layer/common/activation.h"
#include "layer/common/elementwise.h"

namespace quoll {

// y = 1 / (1 + exp(-x)).
class Sigmoid : public ElementwiseOperator<Sigmoid> {
public:
    float value(float x) const { return evaluate<activations::Sigmoid>(x); }
    Activation as_activation() const override { return Activation::plain(kActivationSigmoid); }
};

}  // namespace quoll

#endif
