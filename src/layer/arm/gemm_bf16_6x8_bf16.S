#define ROWS 6
#include "layer/arm/gemm_bf16.inc"

gemm_bf16 QUOLL_SYMBOL(quoll_gemm_bf16_6x8_bf16)
