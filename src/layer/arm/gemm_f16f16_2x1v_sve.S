#define ROWS 2
#define VECTORS 1
#define PAIRS 1
#include "layer/arm/gemm_sve.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16f16_2x1v_sve)
