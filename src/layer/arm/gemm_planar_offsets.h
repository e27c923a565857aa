// Offsets of GemmPlanarTile (layer/cpu/gemm/gemm.h) for assembly; gemm_planar_offsets.cpp asserts
// them.
#ifndef QUOLL_LAYER_ARM_GEMM_PLANAR_OFFSETS_H
#define QUOLL_LAYER_ARM_GEMM_PLANAR_OFFSETS_H

#define GEMM_PLANAR_IN 0
#define GEMM_PLANAR_IN_STEP 8
#define GEMM_PLANAR_K 16
#define GEMM_PLANAR_B 24
#define GEMM_PLANAR_B_STEP 32
#define GEMM_PLANAR_BIAS 40
#define GEMM_PLANAR_OUT 48
#define GEMM_PLANAR_OUT_STEP 56
#define GEMM_PLANAR_USED 64
#define GEMM_PLANAR_LOW 72
#define GEMM_PLANAR_HIGH 76

#endif
