#ifndef QUOLL_LAYER_MISH_H
#define QUOLL_LAYER_MISH_H

#include <math.h>

#include "elementwise.h"

namespace quoll {

// y = x * tanh(log(1 + exp(x))).
class Mish : public ElementwiseOperator<Mish> {
public:
    float value(float x) const {
        if (x == -INFINITY) return 0.f;  // the limit
        // log1p(exp(x)) is x itself once exp(x) would overflow.
        return x * tanhf(x > 20.f ? x : log1pf(expf(x)));
    }
};

}  // namespace quoll

#endif
