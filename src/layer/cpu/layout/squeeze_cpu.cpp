#include "layer/tensor/squeeze.h"

#include "layer/cpu/layout/reshaped_cpu.h"

namespace quoll {

Layer* create_Squeeze_fast_layer() { return new ReshapedCpu<Squeeze>; }

}  // namespace quoll
