#include "layer/activation/clip.h"

#include <float.h>

namespace quoll {

void Clip::params(Clip& s, ParamVisitor& v) {
    v(0, "min", s.min, -FLT_MAX, "lower limit");
    v(1, "max", s.max, FLT_MAX, "upper limit");
}

QUOLL_DEFINE_LAYER(Clip)

}  // namespace quoll
