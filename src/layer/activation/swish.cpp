#include "layer/activation/swish.h"

namespace quoll {

void Swish::params(Swish& s, ParamVisitor& v) {
    v(0, "beta", s.beta, 1.f, "factor of x in the sigmoid (not in ncnn)");
}

QUOLL_DEFINE_LAYER(Swish)

}  // namespace quoll
