#ifndef QUOLL_LAYER_BNLL_H
#define QUOLL_LAYER_BNLL_H

#include "layer/activation/softplus.h"

namespace quoll {

// y = log(1 + exp(x)), Caffe's name for Softplus.
class BNLL : public ElementwiseOperator<BNLL> {
public:
    float value(float x) const { return softplus(x); }
};

}  // namespace quoll

#endif
