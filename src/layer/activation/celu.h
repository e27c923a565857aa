#ifndef QUOLL_LAYER_CELU_H
#define QUOLL_LAYER_CELU_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = x if x >= 0, else alpha * (exp(x / alpha) - 1).
class CELU : public ElementwiseOperator<CELU> {
public:
    static void params(CELU& s, ParamVisitor& v);
    float value(float x) const { return x < 0.f ? alpha * (expf(x / alpha) - 1.f) : x; }

    float alpha = 1.f;
};

}  // namespace quoll

#endif
