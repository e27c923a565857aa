#define ROWS 3
#include "layer/arm/gemm_f16f32.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16f32_3x16_asimdfhm)
