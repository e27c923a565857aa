#define ROWS 8
#include "layer/arm/gemm_int8_in_order.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_8x8_a55)
