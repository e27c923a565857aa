#define ROWS 3
#define VECTORS 3
#define PAIRS 1
#include "layer/arm/gemm_sve.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16f16_3x3v_sve)
