#include "layer/sequence/gru.h"

#include "layer/cpu/recurrent/recurrent_cpu.h"

namespace quoll {

Layer* create_GRU_fast_layer() { return new RecurrentCpu<GRU, &RecurrentKernels::gru>; }

}  // namespace quoll
