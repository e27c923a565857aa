#include "layer/cpu/pool/pool_layer.h"

namespace quoll {

Layer* create_Pooling1D_fast_layer() { return new PoolingCpu(1); }

}  // namespace quoll
