#ifndef QUOLL_LAYER_ABSVAL_H
#define QUOLL_LAYER_ABSVAL_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = |x|.
class AbsVal : public ElementwiseOperator<AbsVal> {
public:
    float value(float x) const { return fabsf(x); }
};

}  // namespace quoll

#endif
