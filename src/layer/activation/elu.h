#ifndef QUOLL_LAYER_ELU_H
#define QUOLL_LAYER_ELU_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = x if x >= 0, else alpha * (exp(x) - 1).
class ELU : public ElementwiseOperator<ELU> {
public:
    static void params(ELU& s, ParamVisitor& v);
    float value(float x) const { return x < 0.f ? alpha * (expf(x) - 1.f) : x; }

    float alpha = 0.f;
};

}  // namespace quoll

#endif
