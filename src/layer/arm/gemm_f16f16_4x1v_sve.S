#define ROWS 4
#define VECTORS 1
#define PAIRS 1
#include "layer/arm/gemm_sve.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16f16_4x1v_sve)
