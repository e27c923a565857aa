#include "layer/cpu/pool/pool_layer.h"

namespace quoll {

Layer* create_Pooling_fast_layer() { return new PoolingCpu(2); }

}  // namespace quoll
