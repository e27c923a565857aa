#define ROWS 6
#include "layer/arm/gemm_int8_sdot_sve.inc"

gemm_int8 QUOLL_SYMBOL(quoll_gemm_s8_6x2v_sve)
