#define BITS 8
#include "layer/arm/block_bytes_i8mm.inc"

block_bytes QUOLL_SYMBOL(quoll_block_bytes_s8_12x4_i8mm)
