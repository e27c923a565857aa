#define ROWS 1
#define BITS 8
#include "layer/arm/block_tile_neon.inc"

block_tile QUOLL_SYMBOL(quoll_block_tile_f32s8_1x4_neon)
