#include "layer/arm/macros.inc"

// 6 rows of gemm_f16f32_rows_asimdfhm.S.
function QUOLL_SYMBOL(quoll_gemm_f16f32_6x16_asimdfhm)
    mov w9, #6
    b QUOLL_SYMBOL(quoll_gemm_f16f32_rows_asimdfhm)
end_function QUOLL_SYMBOL(quoll_gemm_f16f32_6x16_asimdfhm)
