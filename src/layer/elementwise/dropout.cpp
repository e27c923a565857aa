#include "layer/elementwise/dropout.h"

namespace quoll {

Dropout::Dropout() : scale(1.f) {}

void Dropout::params(Dropout& s, ParamVisitor& v) { v(0, "scale", s.scale, 1.f, "factor"); }

QUOLL_DEFINE_LAYER(Dropout)

}  // namespace quoll
