#define ROWS 3
#define BITS 4
#include "layer/arm/block_tile_neon.inc"

block_tile QUOLL_SYMBOL(quoll_block_tile_f32s4_3x4_neon)
