#include "layer/activation/hardswish.h"

namespace quoll {

void HardSwish::params(HardSwish& s, ParamVisitor& v) {
    v(0, "alpha", s.alpha, 0.2f, "slope of the gate");
    v(1, "beta", s.beta, 0.5f, "gate at 0");
}

QUOLL_DEFINE_LAYER(HardSwish)

}  // namespace quoll
