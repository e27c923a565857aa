#include "layer/nn/pooling.h"

namespace quoll {

Layer* create_Pooling1D_layer() { return new Pooling(1); }

}  // namespace quoll
