#define ROWS 2
#define BITS 4
#include "layer/arm/block_dot_asimddp.inc"

block_dot QUOLL_SYMBOL(quoll_block_dot_s4_2x4_asimddp)
