#include "layer/activation/tanh.h"

namespace quoll {

QUOLL_DEFINE_LAYER(TanH)

}  // namespace quoll
