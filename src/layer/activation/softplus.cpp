#include "layer/activation/softplus.h"

namespace quoll {

QUOLL_DEFINE_LAYER(Softplus)

}  // namespace quoll
