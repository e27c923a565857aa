#include "layer/activation/gelu.h"

namespace quoll {

void GELU::params(GELU& s, ParamVisitor& v) {
    v(0, "fast_gelu", s.fast_gelu, 0, "1: the tanh approximation", between(0, 1));
}

QUOLL_DEFINE_LAYER(GELU)

}  // namespace quoll
