#include "layer/elementwise/absval.h"

namespace quoll {

QUOLL_DEFINE_LAYER(AbsVal)

}  // namespace quoll
