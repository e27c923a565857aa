#ifndef QUOLL_LAYER_SIGMOID_H
#define QUOLL_LAYER_SIGMOID_H

#include <math.h>

#include "elementwise.h"

namespace quoll {

// y = 1 / (1 + exp(-x)).
class Sigmoid : public ElementwiseOperator<Sigmoid> {
public:
    float value(float x) const { return 1.f / (1.f + expf(-x)); }
};

}  // namespace quoll

#endif
