#define COLUMNS 4
#include "layer/arm/gemm_planar_sve.inc"

gemm_planar QUOLL_SYMBOL(quoll_gemm_planar_f16_4x3v_sve)
