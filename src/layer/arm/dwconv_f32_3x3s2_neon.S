#define STRIDE 2
#include "layer/arm/dwconv_neon.inc"

dwconv_pair QUOLL_SYMBOL(quoll_dwconv_f32_3x3s2_neon)
