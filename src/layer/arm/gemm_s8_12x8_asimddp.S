#define ROWS 12
#define DOT 1
#include "layer/arm/gemm_int8_neon.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_12x8_asimddp)
