#ifndef QUOLL_LAYER_HARDSWISH_H
#define QUOLL_LAYER_HARDSWISH_H

#include "layer/common/activation.h"
#include "layer/common/elementwise.h"

namespace quoll {

// y = x * clamp(alpha * x + beta, 0, 1).
class HardSwish : public ElementwiseOperator<HardSwish> {
public:
    static void params(HardSwish& s, ParamVisitor& v);
    float value(float x) const { return evaluate<activations::HardSwish>(x, alpha, beta); }
    Activation as_activation() const override { return {kActivationHardSwish, alpha, beta}; }

    float alpha = 0.f, beta = 0.f;
};

}  // namespace quoll

#endif
