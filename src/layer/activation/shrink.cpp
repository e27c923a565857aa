#include "layer/activation/shrink.h"

namespace quoll {

void Shrink::params(Shrink& s, ParamVisitor& v) {
    v(0, "bias", s.bias, 0.f, "how far values move towards 0");
    v(1, "lambd", s.lambd, 0.5f, "values of up to this size become 0");
}

QUOLL_DEFINE_LAYER(Shrink)

}  // namespace quoll
