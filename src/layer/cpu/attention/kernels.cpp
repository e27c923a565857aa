// Compiled once per ISA.
#include "layer/cpu/attention/generic.h"
#include "layer/cpu/common/isa_table.h"

namespace quoll {

extern const AttentionKernels QUOLL_ISA_TABLE(attention_kernels);
const AttentionKernels QUOLL_ISA_TABLE(attention_kernels) = {
#define QUOLL_ATTENTION(name, type) &name,
#include "layer/cpu/attention/kernels.inc"
#undef QUOLL_ATTENTION
};

}  // namespace quoll
