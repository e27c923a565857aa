#define BITS 8
#include "layer/arm/block_bytes_asimddp.inc"

block_bytes QUOLL_SYMBOL(quoll_block_bytes_s8_12x4_asimddp)
