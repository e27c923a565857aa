#include "layer/activation/selu.h"

namespace quoll {

void SELU::params(SELU& s, ParamVisitor& v) {
    v(0, "alpha", s.alpha, 1.67326324f, "factor of negative values");
    v(1, "lambda", s.lambda, 1.050700987f, "factor of all");
}

QUOLL_DEFINE_LAYER(SELU)

}  // namespace quoll
