#define DIGITS 3
#define BITS 4
#include "layer/arm/block_row_asimddp.inc"

block_row QUOLL_SYMBOL(quoll_block_row_s4d3_1x8_asimddp)
