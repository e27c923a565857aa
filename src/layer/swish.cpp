#include "swish.h"

namespace quoll {

QUOLL_DEFINE_LAYER(Swish)

}  // namespace quoll
