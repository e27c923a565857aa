#include "layer/tensor/expanddims.h"

#include "layer/cpu/layout/reshaped_cpu.h"

namespace quoll {

Layer* create_ExpandDims_fast_layer() { return new ReshapedCpu<ExpandDims>; }

}  // namespace quoll
