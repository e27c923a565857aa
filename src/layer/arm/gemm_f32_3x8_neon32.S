#define ROWS 3
#define VECTORS 2
#include "layer/arm/gemm_neon32.inc"

gemm_tile quoll_gemm_f32_3x8_neon32
