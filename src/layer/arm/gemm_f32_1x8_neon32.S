#define ROWS 1
#define VECTORS 2
#include "layer/arm/gemm_neon32.inc"

gemm_tile quoll_gemm_f32_1x8_neon32
