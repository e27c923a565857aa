#define ROWS 5
#define VECTORS 4
#define HALF 1
#define PAIRS 1
#define IN_ORDER 1
#include "layer/arm/gemm_neon.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16f16_5x32_a55)
