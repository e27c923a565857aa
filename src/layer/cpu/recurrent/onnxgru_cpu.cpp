#include "layer/sequence/onnxgru.h"

#include "layer/cpu/recurrent/onnxrecurrent_cpu.h"

namespace quoll {

Layer* create_OnnxGRU_fast_layer() {
    return new OnnxRecurrentCpu<OnnxGRU, &RecurrentKernels::onnx_gru,
                                &RecurrentKernels::onnx_gru_reset,
                                &RecurrentKernels::onnx_gru_last>;
}

}  // namespace quoll
