#define ROWS 8
#include "layer/arm/gemm_bf16.inc"

gemm_bf16 QUOLL_SYMBOL(quoll_gemm_bf16_8x8_bf16)
