#define ROWS 4
#define BITS 4
#include "layer/arm/block_dot_asimddp.inc"

block_dot QUOLL_SYMBOL(quoll_block_dot_s4_4x4_asimddp)
