#define ROWS 5
#define DOT 0
#include "layer/arm/gemm_int8_neon.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s16_5x8_neon)
