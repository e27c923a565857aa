#include "layer/arm/macros.inc"

// 4 rows of gemm_f16f32_rows_asimdfhm.S.
function QUOLL_SYMBOL(quoll_gemm_f16f32_4x16_asimdfhm)
    mov w9, #4
    b QUOLL_SYMBOL(quoll_gemm_f16f32_rows_asimdfhm)
end_function QUOLL_SYMBOL(quoll_gemm_f16f32_4x16_asimdfhm)
