#include "layer/sequence/lstm.h"

#include "layer/cpu/recurrent/recurrent_cpu.h"

namespace quoll {

Layer* create_LSTM_fast_layer() { return new RecurrentCpu<LSTM, &RecurrentKernels::lstm>; }

}  // namespace quoll
