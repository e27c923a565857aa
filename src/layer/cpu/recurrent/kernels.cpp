// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/recurrent/generic.h"
#include "layer/cpu/recurrent/recurrent.h"

namespace quoll {

extern const RecurrentKernels QUOLL_ISA_TABLE(recurrent_kernels);
const RecurrentKernels QUOLL_ISA_TABLE(recurrent_kernels) = {
#define QUOLL_RECURRENT(name, functor, gates) &recurrent_kernel<functor>,
#include "layer/cpu/recurrent/kernels.inc"
#undef QUOLL_RECURRENT
};

}  // namespace quoll
