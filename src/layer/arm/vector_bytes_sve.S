// unsigned quoll_vector_bytes_sve(): the bytes of a vector of SVE in this thread.
#include "layer/arm/macros.inc"

function QUOLL_SYMBOL(quoll_vector_bytes_sve)
    rdvl x0, #1
    ret
end_function QUOLL_SYMBOL(quoll_vector_bytes_sve)
