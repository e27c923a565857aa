#define ROWS 3
#define VECTORS 3
#define HALF 0
#include "layer/arm/gemm_neon.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f32_3x12_neon)
