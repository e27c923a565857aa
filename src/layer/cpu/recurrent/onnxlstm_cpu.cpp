#include "layer/sequence/onnxlstm.h"

#include "layer/cpu/recurrent/onnxrecurrent_cpu.h"

namespace quoll {

Layer* create_OnnxLSTM_fast_layer() {
    return new OnnxRecurrentCpu<OnnxLSTM, &RecurrentKernels::onnx_lstm>;
}

}  // namespace quoll
