// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/norm/generic.h"

namespace quoll {

extern const NormKernels QUOLL_ISA_TABLE(norm_kernels);
const NormKernels QUOLL_ISA_TABLE(norm_kernels) = {
#define QUOLL_NORM(name, type, function) &function,
#include "layer/cpu/norm/kernels.inc"
#undef QUOLL_NORM
};

}  // namespace quoll
