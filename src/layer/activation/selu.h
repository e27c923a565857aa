#ifndef QUOLL_LAYER_SELU_H
#define QUOLL_LAYER_SELU_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = lambda * x if x >= 0, else lambda * alpha * (exp(x) - 1).
class SELU : public ElementwiseOperator<SELU> {
public:
    static void params(SELU& s, ParamVisitor& v);
    float value(float x) const { return lambda * (x < 0.f ? alpha * (expf(x) - 1.f) : x); }

    float alpha = 0.f, lambda = 0.f;
};

}  // namespace quoll

#endif
