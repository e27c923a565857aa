#include "layer/tensor/flatten.h"

#include "layer/cpu/layout/reshaped_cpu.h"

namespace quoll {

Layer* create_Flatten_fast_layer() { return new ReshapedCpu<Flatten>; }

}  // namespace quoll
