#define ROWS 7
#include "layer/arm/gemm_int8_in_order.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_7x8_a55)
