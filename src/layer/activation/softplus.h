#ifndef QUOLL_LAYER_SOFTPLUS_H
#define QUOLL_LAYER_SOFTPLUS_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// log(1 + e^x), written so that only the first term grows.
inline float softplus(float x) { return (x > 0.f ? x : 0.f) + log1pf(expf(-fabsf(x))); }

// y = log(1 + exp(x)).
class Softplus : public ElementwiseOperator<Softplus> {
public:
    float value(float x) const { return softplus(x); }
};

}  // namespace quoll

#endif
