#include "layer/activation/bnll.h"

namespace quoll {

QUOLL_DEFINE_LAYER(BNLL)

}  // namespace quoll
