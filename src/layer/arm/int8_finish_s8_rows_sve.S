// void quoll_int8_finish_s8_rows_sve(const Int8SveRows& t) (int8_finish_sve.h): sums of a vector of columns, rows by rows, become
// bytes: (float)sum * scale + bias, times top_scale, each step rounded, to the nearest whole number, ties away from zero, within
// limits. Four columns' bytes of neighbouring rows are neighbours.
//
// Bytes of four rows fill a vector, as 32-bit elements of four columns each. Two such vectors of 256 bits, four of 512, are taken
// apart by UZP into a vector of all rows for every four columns.
//
// Registers: z0 to z3: rows. z16 to z19: bytes of four rows each. z24: scale, z25: bias, z26: top_scale, z27, z28: limits.
// x1: sums, x2: from row to row in elements, x3, x4: twice and three times that, x5: bytes written, x6: bytes to write,
// x9 to x12: where each four columns go, x13: bytes of a vector.
#include "layer/arm/int8_finish_sve.h"
#include "layer/arm/macros.inc"

.macro finish_row r
    scvtf z\r\().s, p0/m, z\r\().s
    fmul z\r\().s, z\r\().s, z24.s
    fadd z\r\().s, z\r\().s, z25.s
    fmul z\r\().s, z\r\().s, z26.s
    frinta z\r\().s, p0/m, z\r\().s
    fcvtzs z\r\().s, p0/m, z\r\().s
    smax z\r\().s, p0/m, z\r\().s, z27.s
    smin z\r\().s, p0/m, z\r\().s, z28.s
.endm

.macro finish_rows to
    ld1w {z0.s}, p0/z, [x1]
    ld1w {z1.s}, p0/z, [x1, x2, lsl #2]
    ld1w {z2.s}, p0/z, [x1, x3, lsl #2]
    ld1w {z3.s}, p0/z, [x1, x4, lsl #2]
    add x1, x1, x2, lsl #4
    finish_row 0
    finish_row 1
    finish_row 2
    finish_row 3
    uzp1 z0.h, z0.h, z1.h
    uzp1 z2.h, z2.h, z3.h
    uzp1 z\to\().b, z0.b, z2.b
.endm

function QUOLL_SYMBOL(quoll_int8_finish_s8_rows_sve)
    ptrue p0.b
    ldp x1, x2, [x0, #INT8_SVE_ROWS_SUMS]
    ldp x3, x4, [x0, #INT8_SVE_ROWS_SCALE]
    ldp x9, x10, [x0, #INT8_SVE_ROWS_TO]
    ldp x11, x12, [x0, #(INT8_SVE_ROWS_TO + 16)]
    ldr x6, [x0, #INT8_SVE_ROWS_BYTES]
    add x7, x0, #INT8_SVE_ROWS_TOP_SCALE
    ld1w {z24.s}, p0/z, [x3]
    ld1w {z25.s}, p0/z, [x4]
    ld1rw {z26.s}, p0/z, [x7]
    ld1rw {z27.s}, p0/z, [x7, #4]
    ld1rw {z28.s}, p0/z, [x7, #8]
    lsl x3, x2, #1
    add x4, x3, x2
    mov x5, #0
    rdvl x13, #1
    cmp x13, #32
    b.ne 2f
1:
    finish_rows 16
    finish_rows 17
    uzp1 z0.s, z16.s, z17.s
    uzp2 z1.s, z16.s, z17.s
    st1b {z0.b}, p0, [x9, x5]
    st1b {z1.b}, p0, [x10, x5]
    add x5, x5, x13
    cmp x5, x6
    b.lo 1b
    ret
2:
    finish_rows 16
    finish_rows 17
    finish_rows 18
    finish_rows 19
    uzp1 z0.s, z16.s, z17.s
    uzp2 z1.s, z16.s, z17.s
    uzp1 z2.s, z18.s, z19.s
    uzp2 z3.s, z18.s, z19.s
    uzp1 z16.s, z0.s, z2.s
    uzp1 z17.s, z1.s, z3.s
    uzp2 z18.s, z0.s, z2.s
    uzp2 z19.s, z1.s, z3.s
    st1b {z16.b}, p0, [x9, x5]
    st1b {z17.b}, p0, [x10, x5]
    st1b {z18.b}, p0, [x11, x5]
    st1b {z19.b}, p0, [x12, x5]
    add x5, x5, x13
    cmp x5, x6
    b.lo 2b
    ret
end_function QUOLL_SYMBOL(quoll_int8_finish_s8_rows_sve)
