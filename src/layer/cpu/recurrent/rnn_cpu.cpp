#include "layer/sequence/rnn.h"

#include "layer/cpu/recurrent/recurrent_cpu.h"

namespace quoll {

Layer* create_RNN_fast_layer() { return new RecurrentCpu<RNN, &RecurrentKernels::rnn>; }

}  // namespace quoll
