#include "layer/activation/hardsigmoid.h"

namespace quoll {

void HardSigmoid::params(HardSigmoid& s, ParamVisitor& v) {
    v(0, "alpha", s.alpha, 0.2f, "slope");
    v(1, "beta", s.beta, 0.5f, "value at 0");
}

QUOLL_DEFINE_LAYER(HardSigmoid)

}  // namespace quoll
