#include "layer/cpu/pool/pool_layer.h"

namespace quoll {

Layer* create_Pooling3D_fast_layer() { return new PoolingCpu(3); }

}  // namespace quoll
