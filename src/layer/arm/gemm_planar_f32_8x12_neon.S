#define COLUMNS 8
#include "layer/arm/gemm_planar_neon.inc"

gemm_planar QUOLL_SYMBOL(quoll_gemm_planar_f32_8x12_neon)
