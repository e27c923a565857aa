#define ROWS 2
#define VECTORS 2
#include "layer/arm/gemm_neon32.inc"

gemm_tile quoll_gemm_f32_2x8_neon32
