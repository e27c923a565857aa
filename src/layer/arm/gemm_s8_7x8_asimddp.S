#define ROWS 7
#define DOT 1
#include "layer/arm/gemm_int8_neon.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_7x8_asimddp)
