#define ROWS 3
#define COLUMNS 4
#include "layer/arm/gemm_s8_neon.inc"

gemm_s8 QUOLL_SYMBOL(quoll_gemm_s8_3x4_neon)
