// Offsets of BlockTile, BlockDigits and ByteRows (layer/cpu/int8/int8.h) for assembly of 64-bit
// machines; block_tile_offsets.cpp asserts them.
#ifndef QUOLL_LAYER_ARM_BLOCK_TILE_OFFSETS_H
#define QUOLL_LAYER_ARM_BLOCK_TILE_OFFSETS_H

#define BLOCK_TILE_A 0
#define BLOCK_TILE_A_ROW 8
#define BLOCK_TILE_DIGITS 16
#define BLOCK_TILE_BYTES 24
#define BLOCK_TILE_B 32
#define BLOCK_TILE_SCALE 40
#define BLOCK_TILE_OFFSET 48
#define BLOCK_TILE_HALF_SCALE 56
#define BLOCK_TILE_A_SUM 64
#define BLOCK_TILE_A_SUM_ROW 72
#define BLOCK_TILE_K 80
#define BLOCK_TILE_BLOCK 88
#define BLOCK_TILE_OUT 96
#define BLOCK_TILE_OUT_ROW 104
// A BlockDigits is two pointers: digits, blocks. A ByteRows begins with two: values, blocks.
#define BLOCK_DIGITS_BLOCK_SIZE 16
#define BYTE_ROWS_BLOCK_SIZE 8

#endif
