#include "pool_reference.h"

namespace quoll {

Layer* create_Pooling3D_layer() { return new PoolingOperator(3); }

}  // namespace quoll
