// unsigned quoll_vector_bytes_sme(): the bytes of a vector in streaming mode in this thread.
#include "layer/arm/macros.inc"

    .arch_extension sme

function QUOLL_SYMBOL(quoll_vector_bytes_sme)
    .inst 0x04bf5820  // RDSVL x0, #1, which LLVM 14 does not know
    ret
end_function QUOLL_SYMBOL(quoll_vector_bytes_sme)
