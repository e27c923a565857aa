#define ROWS 5
#include "layer/arm/gemm_f16f32.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16f32_5x16_asimdfhm)
