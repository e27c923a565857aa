#include "pool_reference.h"

namespace quoll {

Layer* create_Pooling_layer() { return new PoolingOperator(2); }

}  // namespace quoll
