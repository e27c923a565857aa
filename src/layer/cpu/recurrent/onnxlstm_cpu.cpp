#include "layer/sequence/onnxlstm.h"

#include "layer/common/side_by_side.h"
#include "layer/cpu/recurrent/onnxrecurrent_cpu.h"

namespace quoll {

void run_both_directions(double work, void (*run)(const void*, int, const Option&),
                         const void* context, const Option& opt) {
    const SideBySide sharing = side_by_side(2, work, threads_for(opt, work));
    Option own = opt;
    own.num_threads = sharing.threads;
    run_tasks_in_teams(2, sharing.pieces, sharing.threads,
                       [&](int64_t d, int) { run(context, (int)d, own); });
}

Layer* create_OnnxLSTM_fast_layer() {
    return new OnnxRecurrentCpu<OnnxLSTM, &RecurrentKernels::onnx_lstm>;
}

}  // namespace quoll
