#define ROWS 7
#define DOT 0
#include "layer/arm/gemm_int8_neon.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s16_7x8_neon)
