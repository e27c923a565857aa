#define ROWS 4
#define VECTORS 3
#define HALF 1
#define PAIRS 1
#include "layer/arm/gemm_neon.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16f16_4x24_asimdhp)
