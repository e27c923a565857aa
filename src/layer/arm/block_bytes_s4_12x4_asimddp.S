#define BITS 4
#include "layer/arm/block_bytes_asimddp.inc"

block_bytes QUOLL_SYMBOL(quoll_block_bytes_s4_12x4_asimddp)
