#define ROWS 2
#define COLUMNS 8
#include "layer/arm/gemm_s8_neon.inc"

gemm_s8 QUOLL_SYMBOL(quoll_gemm_s8_2x8_neon)
