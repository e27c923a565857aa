#define ROWS 5
#define VECTORS 3
#include "layer/arm/gemm_sve.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f32_5x3v_sve)
