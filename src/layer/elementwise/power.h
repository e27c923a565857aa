#ifndef QUOLL_LAYER_POWER_H
#define QUOLL_LAYER_POWER_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = (scale * x + shift)^power.
class Power : public ElementwiseOperator<Power> {
public:
    static void params(Power& s, ParamVisitor& v);
    float value(float x) const { return powf(x * scale + shift, power); }

    float power = 1.f, scale = 1.f, shift = 0.f;
};

}  // namespace quoll

#endif
