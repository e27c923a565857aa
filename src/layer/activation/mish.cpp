#include "layer/activation/mish.h"

namespace quoll {

QUOLL_DEFINE_LAYER(Mish)

}  // namespace quoll
