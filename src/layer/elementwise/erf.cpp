#include "layer/elementwise/erf.h"

namespace quoll {

QUOLL_DEFINE_LAYER(Erf)

}  // namespace quoll
