#include "layer/sequence/onnxrnn.h"

#include "layer/cpu/recurrent/onnxrecurrent_cpu.h"

namespace quoll {

Layer* create_OnnxRNN_fast_layer() { return new OnnxRecurrentCpu<OnnxRNN, &RecurrentKernels::rnn>; }

}  // namespace quoll
