#include "layer/activation/celu.h"

namespace quoll {

void CELU::params(CELU& s, ParamVisitor& v) {
    v(0, "alpha", s.alpha, 1.f, "width and depth of the negative branch");
}

QUOLL_DEFINE_LAYER(CELU)

}  // namespace quoll
