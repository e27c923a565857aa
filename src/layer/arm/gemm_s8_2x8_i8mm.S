#define ROWS 2
#define COLUMNS 8
#include "layer/arm/gemm_int8_i8mm.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_2x8_i8mm)
