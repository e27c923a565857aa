// Compiled once per ISA.
#include "layer/cpu/binary/binary.h"
#include "layer/cpu/binary/generic.h"
#include "layer/cpu/common/isa_table.h"

namespace quoll {

extern const BinaryKernels QUOLL_ISA_TABLE(binary_kernels);
const BinaryKernels QUOLL_ISA_TABLE(binary_kernels) = {
#define QUOLL_BINARY(name, functor) \
    {&binary_vectors<functor>, &binary_vector_pattern<functor>, &binary_pattern_vector<functor>},
#include "layer/cpu/binary/kernels.inc"
#undef QUOLL_BINARY
#if defined(__x86_64__) || defined(__i386__)
    &binary_vectors<AddRelu>,
#endif
};

}  // namespace quoll
