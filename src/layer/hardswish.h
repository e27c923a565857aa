#ifndef QUOLL_LAYER_HARDSWISH_H
#define QUOLL_LAYER_HARDSWISH_H

#include "elementwise.h"

namespace quoll {

// y = x * (alpha * x + beta limited to [0, 1]).
class HardSwish : public ElementwiseOperator<HardSwish> {
public:
    static void params(HardSwish& s, ParamVisitor& v);
    float value(float x) const {
        const float gate = alpha * x + beta;
        return gate < 0.f ? 0.f : gate > 1.f ? x : x * gate;
    }

    float alpha = 0.f, beta = 0.f;
};

}  // namespace quoll

#endif
