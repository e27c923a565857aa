// A word of k is one value.
#define WORDS 32
#include "layer/arm/gemm_sme.inc"

.macro OUTER_PRODUCT sums, rows, columns, a, b
    fmopa za\sums\().s, p\rows\()/m, p\columns\()/m, z\a\().s, z\b\().s
.endm

split_list QUOLL_SYMBOL(quoll_gemm_f32_32x32_sme)
