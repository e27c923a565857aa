// A word of k is two neighbouring values; their products are added up as BFMOPA rounds them.
#define WORDS 16
#include "layer/arm/gemm_sme.inc"

.macro OUTER_PRODUCT sums, rows, columns, a, b
    bfmopa za\sums\().s, p\rows\()/m, p\columns\()/m, z\a\().h, z\b\().h
.endm

split_list QUOLL_SYMBOL(quoll_gemm_bf16_32x32_sme)
