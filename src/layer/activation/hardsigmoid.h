#ifndef QUOLL_LAYER_HARDSIGMOID_H
#define QUOLL_LAYER_HARDSIGMOID_H

#include "layer/common/activation.h"
#include "layer/common/elementwise.h"

namespace quoll {

// y = alpha * x + beta, clamped to [0, 1].
class HardSigmoid : public ElementwiseOperator<HardSigmoid> {
public:
    static void params(HardSigmoid& s, ParamVisitor& v);
    float value(float x) const { return evaluate<activations::HardSigmoid>(x, alpha, beta); }

    float alpha = 0.f, beta = 0.f;
};

}  // namespace quoll

#endif
