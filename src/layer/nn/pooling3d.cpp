#include "layer/nn/pooling.h"

namespace quoll {

Layer* create_Pooling3D_layer() { return new Pooling(3); }

}  // namespace quoll
