#ifndef QUOLL_LAYER_HARDSIGMOID_H
#define QUOLL_LAYER_HARDSIGMOID_H

#include "elementwise.h"

namespace quoll {

// y = alpha * x + beta limited to [0, 1].
class HardSigmoid : public ElementwiseOperator<HardSigmoid> {
public:
    static void params(HardSigmoid& s, ParamVisitor& v);
    float value(float x) const {
        const float y = alpha * x + beta;
        return y < 0.f ? 0.f : y > 1.f ? 1.f : y;
    }

    float alpha = 0.f, beta = 0.f;
};

}  // namespace quoll

#endif
