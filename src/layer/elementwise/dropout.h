#ifndef QUOLL_LAYER_DROPOUT_H
#define QUOLL_LAYER_DROPOUT_H

#include "layer/common/elementwise.h"

namespace quoll {

// y = x * scale: what is left of dropout at inference.
class Dropout : public ElementwiseOperator<Dropout> {
public:
    Dropout();
    static void params(Dropout& s, ParamVisitor& v);
    float value(float x) const { return x * scale; }

    float scale;
};

}  // namespace quoll

#endif
