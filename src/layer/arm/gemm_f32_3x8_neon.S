#include "layer/arm/gemm_f32_rowsx8_neon.inc"

.set ROWS, 3
gemm_f32_tile QUOLL_SYMBOL(quoll_gemm_f32_3x8_neon)
