#ifndef QUOLL_LAYER_EXP_H
#define QUOLL_LAYER_EXP_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = base^(scale * x + shift); a base of -1 stands for e.
class Exp : public ElementwiseOperator<Exp> {
public:
    static void params(Exp& s, ParamVisitor& v);
    float value(float x) const {
        const float y = x * scale + shift;
        return base == -1.f ? expf(y) : powf(base, y);
    }

    float base = -1.f, scale = 1.f, shift = 0.f;
};

}  // namespace quoll

#endif
