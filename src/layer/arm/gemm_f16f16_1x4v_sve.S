#define ROWS 1
#define VECTORS 4
#define PAIRS 1
#include "layer/arm/gemm_sve.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16f16_1x4v_sve)
