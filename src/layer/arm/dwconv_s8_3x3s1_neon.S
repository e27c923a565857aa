#define KERNEL 3
#define STRIDE 1
#include "layer/arm/dwconv_int8_neon.inc"

int8_window_rows QUOLL_SYMBOL(quoll_dwconv_s8_3x3s1_neon)
