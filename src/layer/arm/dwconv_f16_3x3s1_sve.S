#define HALF 1
#include "layer/arm/dwconv_sve.inc"

dwconv_pair QUOLL_SYMBOL(quoll_dwconv_f16_3x3s1_sve)
