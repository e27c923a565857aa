#define ROWS 6
#define VECTORS 1
#include "layer/arm/gemm_neon32.inc"

gemm_tile quoll_gemm_f32_6x4_neon32
