#define KERNEL 5
#define STRIDE 2
#include "layer/arm/dwconv_int8_neon.inc"

int8_window_rows QUOLL_SYMBOL(quoll_dwconv_s8_5x5s2_neon)
