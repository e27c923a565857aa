#define COLUMNS 4
#define HALF 1
#include "layer/arm/gemm_planar_neon.inc"

gemm_planar QUOLL_SYMBOL(quoll_gemm_planar_f16_4x24_asimdhp)
