// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/unary/generic.h"
#include "layer/cpu/unary/unary.h"

namespace quoll {

extern const UnaryKernels QUOLL_ISA_TABLE(unary_kernels);
const UnaryKernels QUOLL_ISA_TABLE(unary_kernels) = {
#define QUOLL_UNARY(name, functor, num_params) &unary_kernel<functor>,
#include "layer/cpu/unary/kernels.inc"
#undef QUOLL_UNARY
};

}  // namespace quoll
