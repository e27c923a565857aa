#define ROWS 5
#include "layer/arm/gemm_int8_sdot_sve.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_5x2v_sve)
