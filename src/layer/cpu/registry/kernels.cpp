// Compiled once per ISA: collects the families' tables of that ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/common/kernel_set.h"

namespace quoll {

#define QUOLL_FAMILY(name, type) extern const type QUOLL_ISA_TABLE(name##_kernels);
#include "layer/cpu/common/families.inc"
#undef QUOLL_FAMILY

extern const VectorKernels QUOLL_ISA_TABLE(kernel_set);
const VectorKernels QUOLL_ISA_TABLE(kernel_set) = {
    Isa::QUOLL_ISA_NAME,
    QUOLL_ISA_LANES,
#define QUOLL_BUILT_FAMILY(name) &QUOLL_ISA_TABLE(name##_kernels),
#define QUOLL_ABSENT_FAMILY(name) nullptr,
#include "built_families.inc"
#undef QUOLL_BUILT_FAMILY
#undef QUOLL_ABSENT_FAMILY
};

}  // namespace quoll
