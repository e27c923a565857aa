#define ROWS 6
#include "layer/arm/gemm_f16f32.inc"

gemm_tile QUOLL_SYMBOL(quoll_gemm_f16f32_6x16_asimdfhm)
