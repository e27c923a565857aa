// The steps of recurrent layers on the kernels of recurrent_units.h.
#ifndef QUOLL_LAYER_CPU_RECURRENT_UNIT_STEPS_H
#define QUOLL_LAYER_CPU_RECURRENT_UNIT_STEPS_H

#include "layer/common/recurrent_steps.h"
#include "layer/cpu/recurrent/recurrent.h"
#include "layer/cpu/recurrent/recurrent_units.h"
#include "quoll/layer.h"

namespace quoll {

#if defined(__x86_64__)  // as kMayRunWhole

// The weights of a direction's state.
class UnitSteps {
public:
    UnitSteps();
    ~UnitSteps();
    // weight: row-major, n rows for each gate of `cell`, n columns; last_bias: of the last gate, a
    // GRU's. Stays empty where there are no such kernels for the cell, or weights are infinite.
    // Logs for `layer` and returns a negative code when memory runs out.
    int create(const Layer& layer, RecurrentKernel RecurrentKernels::*cell, const float* weight,
               int n, const float* last_bias, const Option& opt);
    bool created() const { return kernel_ != nullptr; }
    // The steps from `first` to `end`, which all of the layer's threads share.
    int run(const RecurrentSteps& steps, int first, int end, const Option& opt) const;

private:
    int run_items(const RecurrentSteps& steps, int begin, int count, int first, int end,
                  const Option& opt) const;
    int parts(const Option& opt) const;  // for threads
    void share_step(const RecurrentUnitStep& step, size_t values, int parts) const;

    RecurrentUnitKernel kernel_ = nullptr;
    int n_ = 0, gates_ = 0;
    int order_[kMostGates] = {};  // which of the layer's gates the kernel's are
    Mat weights_, last_bias_;
};

#else

struct UnitSteps {
    int create(const Layer&, RecurrentKernel RecurrentKernels::*, const float*, int, const float*,
               const Option&) {
        return 0;
    }
    bool created() const { return false; }
    int run(const RecurrentSteps&, int, int, const Option&) const { return 0; }
};

#endif

}  // namespace quoll

#endif
