#define COLUMNS 8
#include "layer/arm/gemm_planar_sve.inc"

gemm_planar QUOLL_SYMBOL(quoll_gemm_planar_f16_8x3v_sve)
