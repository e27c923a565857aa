#define ROWS 4
#define VECTORS 3
#define HALF 0
#include "layer/arm/gemm_neon.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f32_4x12_neon)
