// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/winograd/generic.h"

namespace quoll {

extern const WinogradKernels QUOLL_ISA_TABLE(winograd_kernels);
const WinogradKernels QUOLL_ISA_TABLE(winograd_kernels) = {
#define QUOLL_WINOGRAD_WEIGHTS(name) &name,
#define QUOLL_WINOGRAD_INPUT(name) &name,
#define QUOLL_WINOGRAD_OUTPUT(name) &name,
#include "layer/cpu/winograd/kernels.inc"
#undef QUOLL_WINOGRAD_WEIGHTS
#undef QUOLL_WINOGRAD_INPUT
#undef QUOLL_WINOGRAD_OUTPUT
};

}  // namespace quoll
