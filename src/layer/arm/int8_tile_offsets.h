// Offsets of Int8Tile (layer/cpu/int8/int8.h) for assembly; int8_tile_offsets.cpp asserts them.
#ifndef QUOLL_LAYER_ARM_INT8_TILE_OFFSETS_H
#define QUOLL_LAYER_ARM_INT8_TILE_OFFSETS_H

#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ == 8
#define INT8_TILE_A 0
#define INT8_TILE_A_ROW 8
#define INT8_TILE_BLOCKS 16
#define INT8_TILE_NUM_BLOCKS 24
#define INT8_TILE_BLOCK_K 32
#define INT8_TILE_B 40
#define INT8_TILE_INIT 48
#define INT8_TILE_SUMS 56
#define INT8_TILE_A_PAIR 64
#define INT8_TILE_MORE 72
#define INT8_TILE_A_TILE 80
#define INT8_TILE_SMALL 112
#else
#define INT8_TILE_A 0
#define INT8_TILE_A_ROW 4
#define INT8_TILE_BLOCKS 8
#define INT8_TILE_NUM_BLOCKS 12
#define INT8_TILE_BLOCK_K 16
#define INT8_TILE_B 20
#define INT8_TILE_INIT 24
#define INT8_TILE_SUMS 28
#define INT8_TILE_A_PAIR 32
#define INT8_TILE_MORE 36
#define INT8_TILE_A_TILE 40
#define INT8_TILE_SMALL 56
#endif

#endif
