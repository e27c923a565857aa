#ifndef QUOLL_LAYER_THRESHOLD_H
#define QUOLL_LAYER_THRESHOLD_H

#include "layer/common/elementwise.h"

namespace quoll {

// y = 1 if x > threshold, else 0.
class Threshold : public ElementwiseOperator<Threshold> {
public:
    static void params(Threshold& s, ParamVisitor& v);
    float value(float x) const { return x > threshold ? 1.f : 0.f; }

    float threshold = 0.f;
};

}  // namespace quoll

#endif
