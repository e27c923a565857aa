#include "layer/activation/threshold.h"

namespace quoll {

void Threshold::params(Threshold& s, ParamVisitor& v) {
    v(0, "threshold", s.threshold, 0.f, "greater values give 1");
}

QUOLL_DEFINE_LAYER(Threshold)

}  // namespace quoll
