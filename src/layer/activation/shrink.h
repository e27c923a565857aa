#ifndef QUOLL_LAYER_SHRINK_H
#define QUOLL_LAYER_SHRINK_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = x + bias if x < -lambd, x - bias if x > lambd, 0 in between.
class Shrink : public ElementwiseOperator<Shrink> {
public:
    static void params(Shrink& s, ParamVisitor& v);
    float value(float x) const {
        return x < -lambd ? x + bias : fabsf(x) <= lambd ? 0.f : x - bias;  // NaN stays NaN
    }

    float bias = 0.f, lambd = 0.5f;
};

}  // namespace quoll

#endif
