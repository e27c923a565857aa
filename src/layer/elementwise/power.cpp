#include "layer/elementwise/power.h"

namespace quoll {

void Power::params(Power& s, ParamVisitor& v) {
    v(0, "power", s.power, 1.f, "exponent");
    v(1, "scale", s.scale, 1.f, "factor of x");
    v(2, "shift", s.shift, 0.f, "added to it");
}

QUOLL_DEFINE_LAYER(Power)

}  // namespace quoll
