#define ROWS 2
#define COLUMNS 8
#include "layer/arm/gemm_s8_neon32.inc"

gemm_s8 quoll_gemm_s8_2x8_neon32
