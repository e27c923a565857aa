#define HALF
#include "layer/arm/winograd_output4x4.inc"

winograd_output QUOLL_SYMBOL(quoll_winograd_f16_output4x4_asimdhp)
