#define ROWS 6
#define VECTORS 4
#define HALF 1
#include "layer/arm/gemm_neon.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16_6x32_asimdhp)
