#ifndef QUOLL_LAYER_ERF_H
#define QUOLL_LAYER_ERF_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = erf(x), the error function 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x.
class Erf : public ElementwiseOperator<Erf> {
public:
    float value(float x) const { return erff(x); }
};

}  // namespace quoll

#endif
