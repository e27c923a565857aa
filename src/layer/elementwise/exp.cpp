#include "layer/elementwise/exp.h"

namespace quoll {

void Exp::params(Exp& s, ParamVisitor& v) {
    v(0, "base", s.base, -1.f, "base of the power, -1: e");
    v(1, "scale", s.scale, 1.f, "factor of the exponent");
    v(2, "shift", s.shift, 0.f, "added to the exponent");
}

QUOLL_DEFINE_LAYER(Exp)

}  // namespace quoll
