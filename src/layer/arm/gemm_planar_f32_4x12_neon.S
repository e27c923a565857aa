#define COLUMNS 4
#include "layer/arm/gemm_planar_neon.inc"

gemm_planar QUOLL_SYMBOL(quoll_gemm_planar_f32_4x12_neon)
