#define HALF
#include "layer/arm/winograd_input4x4.inc"

winograd_input QUOLL_SYMBOL(quoll_winograd_f16_input4x4_asimdhp)
