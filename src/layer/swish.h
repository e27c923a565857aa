#ifndef QUOLL_LAYER_SWISH_H
#define QUOLL_LAYER_SWISH_H

#include <math.h>

#include "elementwise.h"

namespace quoll {

// y = x / (1 + exp(-x)), also called SiLU.
class Swish : public ElementwiseOperator<Swish> {
public:
    float value(float x) const { return x / (1.f + expf(-x)); }
};

}  // namespace quoll

#endif
