#ifndef QUOLL_LAYER_LOG_H
#define QUOLL_LAYER_LOG_H

#include <math.h>

#include "layer/common/elementwise.h"

namespace quoll {

// y = log(scale * x + shift) / log(base); a base of -1 stands for e.
class Log : public ElementwiseOperator<Log> {
public:
    static void params(Log& s, ParamVisitor& v);
    float value(float x) const {
        const float y = logf(x * scale + shift);
        return base == -1.f ? y : y / logf(base);
    }

    float base = -1.f, scale = 1.f, shift = 0.f;
};

}  // namespace quoll

#endif
