#include "layer/activation/elu.h"

namespace quoll {

void ELU::params(ELU& s, ParamVisitor& v) {
    v(0, "alpha", s.alpha, 0.1f, "factor of negative values");
}

QUOLL_DEFINE_LAYER(ELU)

}  // namespace quoll
