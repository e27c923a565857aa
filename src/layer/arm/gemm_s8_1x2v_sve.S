#define ROWS 1
#include "layer/arm/gemm_int8_sdot_sve.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_1x2v_sve)
