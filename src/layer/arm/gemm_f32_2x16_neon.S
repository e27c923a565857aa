#define ROWS 2
#define VECTORS 4
#define HALF 0
#include "layer/arm/gemm_neon.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f32_2x16_neon)
