#include "layer/nn/pooling.h"

namespace quoll {

Layer* create_Pooling_layer() { return new Pooling(2); }

}  // namespace quoll
