#include "pool_reference.h"

namespace quoll {

Layer* create_Pooling1D_layer() { return new PoolingOperator(1); }

}  // namespace quoll
