// WinogradOutput (layer/cpu/winograd/winograd.h): first all columns of points, whose results stay in registers, then
// all rows.
//
// Registers: v0 to v23: result y of column x in v(4 x + y). v24 to v29: points of a column, then v24 to v27 a row of
// outputs, v28 the lower limit, v29 the bias. v30, v31: coefficients. Arguments: x0: in, x1: step, x2: bias, x3: added,
// x4: out, x5: row, w6, w7: size, s0, s1: limits.
#include "layer/arm/macros.inc"

// Powers of the points +-a and +-b, ab = 1: lanes 0 to 3 of v31 are a, b, a^2 and b^2, 0 and 1 of v30 a^3 and b^3.
.macro column y0, y1, y2, y3
    mov x9, x0
    add x0, x0, x1
    ld1 {v24.4s}, [x9], x10
    ld1 {v25.4s}, [x9], x10
    ld1 {v26.4s}, [x9], x10
    ld1 {v27.4s}, [x9], x10
    ld1 {v28.4s}, [x9], x10
    ld1 {v\y3\().4s}, [x9]
    fadd v\y0\().4s, v25.4s, v26.4s
    fsub v25.4s, v25.4s, v26.4s
    fadd v26.4s, v27.4s, v28.4s
    fsub v27.4s, v27.4s, v28.4s
    fmul v\y2\().4s, v\y0\().4s, v31.s[2]
    fmul v\y1\().4s, v25.4s, v31.s[0]
    fmla v\y3\().4s, v25.4s, v30.s[0]
    fadd v\y0\().4s, v\y0\().4s, v24.4s
    fmla v\y2\().4s, v26.4s, v31.s[3]
    fmla v\y1\().4s, v27.4s, v31.s[1]
    fmla v\y3\().4s, v27.4s, v30.s[1]
    fadd v\y0\().4s, v\y0\().4s, v26.4s
.endm

// A row of outputs from results v\m0 to v\m5, which are lost.
.macro output_row m0, m1, m2, m3, m4, m5
    fadd v24.4s, v\m1\().4s, v\m2\().4s
    fsub v\m1\().4s, v\m1\().4s, v\m2\().4s
    fadd v\m2\().4s, v\m3\().4s, v\m4\().4s
    fsub v\m3\().4s, v\m3\().4s, v\m4\().4s
    fmul v26.4s, v24.4s, v31.s[2]
    fmul v25.4s, v\m1\().4s, v31.s[0]
    fmul v27.4s, v\m1\().4s, v30.s[0]
    fadd v24.4s, v24.4s, v\m0\().4s
    fadd v\m5\().4s, v\m5\().4s, v29.4s
    fmla v26.4s, v\m2\().4s, v31.s[3]
    fmla v25.4s, v\m3\().4s, v31.s[1]
    fmla v27.4s, v\m3\().4s, v30.s[1]
    fadd v\m2\().4s, v\m2\().4s, v29.4s
    fadd v26.4s, v26.4s, v29.4s
    fadd v25.4s, v25.4s, v29.4s
    fadd v24.4s, v24.4s, v\m2\().4s
    fadd v27.4s, v27.4s, v\m5\().4s
    cbz x3, 2f
    // What is added, as far as there are outputs.
    ldr q\m0, [x3]
    fadd v24.4s, v24.4s, v\m0\().4s
    cmp w6, #2
    b.lo 1f
    ldr q\m1, [x3, #16]
    fadd v25.4s, v25.4s, v\m1\().4s
    b.eq 1f
    ldr q\m2, [x3, #32]
    fadd v26.4s, v26.4s, v\m2\().4s
    cmp w6, #3
    b.eq 1f
    ldr q\m3, [x3, #48]
    fadd v27.4s, v27.4s, v\m3\().4s
1:
    add x3, x3, x5
2:
    fmax v24.4s, v24.4s, v28.4s
    fmax v25.4s, v25.4s, v28.4s
    fmax v26.4s, v26.4s, v28.4s
    fmax v27.4s, v27.4s, v28.4s
    tbz w8, #0, 3f
    dup v\m0\().4s, w11
    fmin v24.4s, v24.4s, v\m0\().4s
    fmin v25.4s, v25.4s, v\m0\().4s
    fmin v26.4s, v26.4s, v\m0\().4s
    fmin v27.4s, v27.4s, v\m0\().4s
3:
    cmp w6, #4
    b.ne 4f
    st1 {v24.4s, v25.4s, v26.4s, v27.4s}, [x4], x5
    b 6f
4:
    str q24, [x4]
    cmp w6, #2
    b.lo 5f
    str q25, [x4, #16]
    b.eq 5f
    str q26, [x4, #32]
5:
    add x4, x4, x5
6:
    subs w7, w7, #1
    b.eq 9f
.endm

function QUOLL_SYMBOL(quoll_winograd_f32_output4x4_neon)
    save_vectors
    fmov w9, s0
    fmov w11, s1
    mov w10, #0x7f800000  // infinity
    cmp w11, w10
    cset w8, ne
    adr x10, 8f
    ld1 {v30.4s, v31.4s}, [x10]
    lsl x1, x1, #2
    lsl x5, x5, #2
    add x10, x1, x1, lsl #1
    lsl x10, x10, #1
    mov w12, w9
    column 0, 1, 2, 3
    column 4, 5, 6, 7
    column 8, 9, 10, 11
    column 12, 13, 14, 15
    column 16, 17, 18, 19
    column 20, 21, 22, 23
    ldr q29, [x2]
    dup v28.4s, w12
    output_row 0, 4, 8, 12, 16, 20
    output_row 1, 5, 9, 13, 17, 21
    output_row 2, 6, 10, 14, 18, 22
    output_row 3, 7, 11, 15, 19, 23
9:
    restore_vectors
    ret
    .p2align 4
8:
    .single 0.35355339059327379, 2.8284271247461903, 0, 0
    .single 0.70710678118654752, 1.4142135623730951, 0.5, 2
end_function QUOLL_SYMBOL(quoll_winograd_f32_output4x4_neon)
