#define ROWS 5
#define VECTORS 4
#include "layer/arm/gemm_sve.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f32_5x4v_sve)
