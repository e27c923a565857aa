#define ROWS 8
#include "layer/arm/gemm_int8_sve.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_8x4v_svei8mm)
