#define ROWS 3
#define VECTORS 2
#include "layer/arm/gemm_sve.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f32_3x2v_sve)
