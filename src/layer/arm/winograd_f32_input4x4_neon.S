// WinogradInput (layer/cpu/winograd/winograd.h): first all rows, to the stack, then two columns at a time.
//
// Registers: v0 to v5, v6 to v11: a row or column of inputs, v16 to v21: of results, v22 to v24: parts of them. v30,
// v31: coefficients. Arguments: x0: in, x1: row, x2: out, x3: step.
#include "layer/arm/macros.inc"

// With points +-a and +-b, ab = 1: lanes 0 to 3 of v31 are a, b, a^2 and b^2, 0 of v30 a^2 + b^2.
.macro transform d0, d1, d2, d3, d4, d5
    fadd v16.4s, v\d0\().4s, v\d4\().4s
    fadd v21.4s, v\d1\().4s, v\d5\().4s
    fmul v23.4s, v\d3\().4s, v31.s[0]
    fmul v24.4s, v\d3\().4s, v31.s[1]
    mov v22.16b, v\d4\().16b
    fmls v\d4\().4s, v\d2\().4s, v31.s[2]
    fmls v22.4s, v\d2\().4s, v31.s[3]
    fmls v23.4s, v\d1\().4s, v31.s[1]
    fmls v24.4s, v\d1\().4s, v31.s[0]
    fmls v16.4s, v\d2\().4s, v30.s[0]
    fmls v21.4s, v\d3\().4s, v30.s[0]
    fadd v17.4s, v22.4s, v23.4s
    fsub v18.4s, v22.4s, v23.4s
    fadd v19.4s, v\d4\().4s, v24.4s
    fsub v20.4s, v\d4\().4s, v24.4s
.endm

.macro input_row
    ld1 {v0.4s, v1.4s, v2.4s, v3.4s}, [x0], #64
    ld1 {v4.4s, v5.4s}, [x0], x1
    transform 0, 1, 2, 3, 4, 5
    st1 {v16.4s, v17.4s, v18.4s, v19.4s}, [x9], #64
    st1 {v20.4s, v21.4s}, [x9], #32
.endm

.macro store_column
    mov x9, x2
    add x2, x2, x3
    st1 {v16.4s}, [x9], x10
    st1 {v17.4s}, [x9], x10
    st1 {v18.4s}, [x9], x10
    st1 {v19.4s}, [x9], x10
    st1 {v20.4s}, [x9], x10
    st1 {v21.4s}, [x9]
.endm

.macro two_columns x
    ldp q0, q6, [sp, #(\x * 16)]
    ldp q1, q7, [sp, #(\x * 16 + 96)]
    ldp q2, q8, [sp, #(\x * 16 + 192)]
    ldp q3, q9, [sp, #(\x * 16 + 288)]
    ldp q4, q10, [sp, #(\x * 16 + 384)]
    ldp q5, q11, [sp, #(\x * 16 + 480)]
    transform 0, 1, 2, 3, 4, 5
    store_column
    transform 6, 7, 8, 9, 10, 11
    store_column
.endm

function QUOLL_SYMBOL(quoll_winograd_f32_input4x4_neon)
    save_vectors
    sub sp, sp, #576
    .cfi_def_cfa_offset 640
    adr x9, 8f
    ld1 {v30.4s, v31.4s}, [x9]
    lsl x1, x1, #2
    sub x1, x1, #64
    lsl x3, x3, #2
    add x10, x3, x3, lsl #1
    lsl x10, x10, #1
    mov x9, sp
    input_row
    input_row
    input_row
    input_row
    input_row
    input_row
    two_columns 0
    two_columns 2
    two_columns 4
    add sp, sp, #576
    .cfi_def_cfa_offset 64
    restore_vectors
    ret
    .p2align 4
8:
    .single 2.5, 0, 0, 0
    .single 0.70710678118654752, 1.4142135623730951, 0.5, 2
end_function QUOLL_SYMBOL(quoll_winograd_f32_input4x4_neon)
