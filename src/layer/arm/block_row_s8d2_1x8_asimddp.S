#define DIGITS 2
#define BITS 8
#include "layer/arm/block_row_asimddp.inc"

block_row QUOLL_SYMBOL(quoll_block_row_s8d2_1x8_asimddp)
