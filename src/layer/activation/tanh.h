#ifndef QUOLL_LAYER_TANH_H
#define QUOLL_LAYER_TANH_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = tanh(x).
class TanH : public ElementwiseOperator<TanH> {
public:
    float value(float x) const { return tanhf(x); }
};

}  // namespace quoll

#endif
