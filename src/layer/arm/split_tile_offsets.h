// Offsets of SplitTile (layer/cpu/gemm/split_gemm.h) for assembly of 64-bit machines; split_tile_offsets.cpp asserts them.
#ifndef QUOLL_LAYER_ARM_SPLIT_TILE_OFFSETS_H
#define QUOLL_LAYER_ARM_SPLIT_TILE_OFFSETS_H

#define SPLIT_TILE_A 0
#define SPLIT_TILE_A_TILE 16
#define SPLIT_TILE_ROWS 24
#define SPLIT_TILE_STEPS 32
#define SPLIT_TILE_NUM_STEPS 40
#define SPLIT_TILE_B 48
#define SPLIT_TILE_A_WORD 80
#define SPLIT_TILE_SUMS 88
#define SPLIT_TILE_FULL_STEPS 96
#define SPLIT_TILE_LAST_PAIRS 104
#define SPLIT_TILE_SIZE 128

#endif
