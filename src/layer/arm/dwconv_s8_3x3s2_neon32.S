#define STRIDE 2
#include "layer/arm/dwconv_int8_neon32.inc"

int8_window_rows quoll_dwconv_s8_3x3s2_neon32
