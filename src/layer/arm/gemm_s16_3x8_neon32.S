#define ROWS 3
#include "layer/arm/gemm_s16_neon32.inc"

gemm_s16 quoll_gemm_s16_3x8_neon32
