#define DIGITS 3
#define BITS 8
#include "layer/arm/block_row_asimddp.inc"

block_row QUOLL_SYMBOL(quoll_block_row_s8d3_1x8_asimddp)
