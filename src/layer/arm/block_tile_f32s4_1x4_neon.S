#define ROWS 1
#define BITS 4
#include "layer/arm/block_tile_neon.inc"

block_tile QUOLL_SYMBOL(quoll_block_tile_f32s4_1x4_neon)
