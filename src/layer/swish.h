#ifndef QUOLL_LAYER_SWISH_H
#define QUOLL_LAYER_SWISH_H

#include <math.h>

#include "elementwise.h"

namespace quoll {

// y = x / (1 + exp(-beta * x)); with beta 1 also called SiLU, with 1.702 QuickGELU.
class Swish : public ElementwiseOperator<Swish> {
public:
    static void params(Swish& s, ParamVisitor& v);
    float value(float x) const {
        return x == -INFINITY ? 0.f : x / (1.f + expf(-beta * x));  // the limit
    }

    float beta = 1.f;
};

}  // namespace quoll

#endif
