#define STRIDE 1
#define HALF
#include "layer/arm/dwconv_neon.inc"

dwconv_pair QUOLL_SYMBOL(quoll_dwconv_f16_3x3s1_asimdhp)
