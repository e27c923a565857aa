#include "layer/elementwise/log.h"

namespace quoll {

void Log::params(Log& s, ParamVisitor& v) {
    v(0, "base", s.base, -1.f, "base of the logarithm, -1: e");
    v(1, "scale", s.scale, 1.f, "factor of x");
    v(2, "shift", s.shift, 0.f, "added to it");
}

QUOLL_DEFINE_LAYER(Log)

}  // namespace quoll
