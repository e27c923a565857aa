// Offsets of GemmTile (layer/cpu/gemm/gemm.h) for assembly; gemm_tile_offsets.cpp asserts them.
#ifndef QUOLL_LAYER_ARM_GEMM_TILE_OFFSETS_H
#define QUOLL_LAYER_ARM_GEMM_TILE_OFFSETS_H

#define GEMM_TILE_A 0
#define GEMM_TILE_A_ROW 8
#define GEMM_TILE_A_K 16
#define GEMM_TILE_BLOCKS 24
#define GEMM_TILE_NUM_BLOCKS 32
#define GEMM_TILE_BLOCK_K 40
#define GEMM_TILE_B 48
#define GEMM_TILE_INIT 56
#define GEMM_TILE_INIT_ROW 64
#define GEMM_TILE_INIT_VECTOR 72
#define GEMM_TILE_C 80
#define GEMM_TILE_C_ROW 88
#define GEMM_TILE_C_VECTOR 96
#define GEMM_TILE_LOW 104
#define GEMM_TILE_HIGH 108
#define GEMM_TILE_FETCH_FROM 112
#define GEMM_TILE_FETCH_STEP 120
#define GEMM_TILE_MORE 128
#define GEMM_TILE_A_TILE 136
#define GEMM_TILE_INIT_TILE 144
#define GEMM_TILE_C_TILE 152
#define GEMM_TILE_BLOCK_STEP 160

#define GEMM_BLOCK_A 0
#define GEMM_BLOCK_K 8
#define GEMM_BLOCK_SIZE 16

#endif
