#define ROWS 8
#include "layer/arm/gemm_int8_sdot_sve.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_8x2v_sve)
