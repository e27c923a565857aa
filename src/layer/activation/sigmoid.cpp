#include "layer/activation/sigmoid.h"

namespace quoll {

QUOLL_DEFINE_LAYER(Sigmoid)

}  // namespace quoll
