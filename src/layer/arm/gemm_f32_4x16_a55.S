#define ROWS 4
#define VECTORS 4
#define HALF 0
#define IN_ORDER 1
#include "layer/arm/gemm_neon.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f32_4x16_a55)
