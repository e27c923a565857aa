// A DwconvPlanesKernel (layer/cpu/dwconv/dwconv.h), fp32: 64 outputs at a time, then 16, 4 and one. Terms are added in the
// order of the portable kernel: results are the same.
//
// Registers: v0 to v7, v16 to v23: sums. v24 to v27: a tap's values, v28: its weight, v29: the bias. v30, v31: the limits.
// x1: taps, x2: weights, w3: how many, x4: the next tap, x5: out, x6: outputs left, x7: bytes from the taps' first values,
// x9: a tap's values, x10: the next weight, w11: taps left.
#include "layer/arm/dwconv_planes_offsets.h"
#include "layer/arm/macros.inc"

.macro start_sums sums:vararg
.irp sum, \sums
    mov \sum, v29.16b
.endr
    mov x4, x1
    mov x10, x2
    mov w11, w3
.endm

.macro next_tap
    ldr x9, [x4], #8
    ldr q28, [x10], #16
    add x9, x9, x7
.endm

.macro four_terms s0, s1, s2, s3
    ld1 {v24.4s, v25.4s, v26.4s, v27.4s}, [x9], #64
    fmla v\s0\().4s, v24.4s, v28.4s
    fmla v\s1\().4s, v25.4s, v28.4s
    fmla v\s2\().4s, v26.4s, v28.4s
    fmla v\s3\().4s, v27.4s, v28.4s
.endm

.macro limit_sums sums:vararg
.irp sum, \sums
    fmax \sum, \sum, v30.4s
.endr
.irp sum, \sums
    fmin \sum, \sum, v31.4s
.endr
.endm

.macro advance outputs
    add x7, x7, #(4 * \outputs)
    subs x6, x6, #\outputs
.endm

function QUOLL_SYMBOL(quoll_dwconv_planes_f32_neon)
    ldp x1, x2, [x0, #DWCONV_PLANES_TAPS]
    ldr w3, [x0, #DWCONV_PLANES_NUM_TAPS]
    ldr x4, [x0, #DWCONV_PLANES_BIAS]
    ldr q29, [x4]
    ldp x5, x6, [x0, #DWCONV_PLANES_OUT]
    add x9, x0, #DWCONV_PLANES_LOW
    ld1r {v30.4s}, [x9], #4
    ld1r {v31.4s}, [x9]
    mov x7, #0
    subs x6, x6, #64
    b.lo 20f
10:
    start_sums v0.16b, v1.16b, v2.16b, v3.16b, v4.16b, v5.16b, v6.16b, v7.16b, v16.16b, v17.16b, v18.16b, v19.16b, v20.16b, v21.16b, v22.16b, v23.16b
11:
    next_tap
    four_terms 0, 1, 2, 3
    four_terms 4, 5, 6, 7
    four_terms 16, 17, 18, 19
    four_terms 20, 21, 22, 23
    subs w11, w11, #1
    b.ne 11b
    limit_sums v0.4s, v1.4s, v2.4s, v3.4s, v4.4s, v5.4s, v6.4s, v7.4s
    limit_sums v16.4s, v17.4s, v18.4s, v19.4s, v20.4s, v21.4s, v22.4s, v23.4s
    st1 {v0.4s, v1.4s, v2.4s, v3.4s}, [x5], #64
    st1 {v4.4s, v5.4s, v6.4s, v7.4s}, [x5], #64
    st1 {v16.4s, v17.4s, v18.4s, v19.4s}, [x5], #64
    st1 {v20.4s, v21.4s, v22.4s, v23.4s}, [x5], #64
    advance 64
    b.hs 10b
20:
    adds x6, x6, #48
    b.mi 30f
21:
    start_sums v0.16b, v1.16b, v2.16b, v3.16b
22:
    next_tap
    four_terms 0, 1, 2, 3
    subs w11, w11, #1
    b.ne 22b
    limit_sums v0.4s, v1.4s, v2.4s, v3.4s
    st1 {v0.4s, v1.4s, v2.4s, v3.4s}, [x5], #64
    advance 16
    b.hs 21b
30:
    adds x6, x6, #12
    b.mi 40f
31:
    start_sums v0.16b
32:
    next_tap
    ldr q24, [x9]
    fmla v0.4s, v24.4s, v28.4s
    subs w11, w11, #1
    b.ne 32b
    limit_sums v0.4s
    str q0, [x5], #16
    advance 4
    b.hs 31b
40:
    // Fewer than a register: lane by lane of it, whose bias is in v29 and whose weight begins at x2.
    adds x6, x6, #4
    b.eq 90f
41:
    start_sums v0.16b
42:
    ldr x9, [x4], #8
    ldr s28, [x10], #16
    ldr s24, [x9, x7]
    fmadd s0, s24, s28, s0
    subs w11, w11, #1
    b.ne 42b
    limit_sums v0.4s
    str s0, [x5], #4
    ext v29.16b, v29.16b, v29.16b, #4
    add x2, x2, #4
    advance 1
    b.ne 41b
90:
    ret
end_function QUOLL_SYMBOL(quoll_dwconv_planes_f32_neon)
