#define ROWS 8
#define COLUMNS 4
#include "layer/arm/gemm_int8_i8mm.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_8x4_i8mm)
