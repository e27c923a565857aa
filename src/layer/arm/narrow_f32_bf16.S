// StorageKernels::narrow (layer/cpu/cast/cast.h) of bf16: x0: floats, x1: bf16 values, x2: how many.
#include "layer/arm/macros.inc"

function QUOLL_SYMBOL(quoll_narrow_f32_bf16)
    subs x2, x2, #16
    b.lo 2f
1:
    ld1 {v0.4s, v1.4s, v2.4s, v3.4s}, [x0], #64
    bfcvtn v4.4h, v0.4s
    bfcvtn v5.4h, v2.4s
    bfcvtn2 v4.8h, v1.4s
    bfcvtn2 v5.8h, v3.4s
    subs x2, x2, #16
    stp q4, q5, [x1], #32
    b.hs 1b
2:  // the low bits of x2 are those of what is left
    tbz x2, #3, 3f
    ldp q0, q1, [x0], #32
    bfcvtn v4.4h, v0.4s
    bfcvtn2 v4.8h, v1.4s
    str q4, [x1], #16
3:
    tbz x2, #2, 4f
    ldr q0, [x0], #16
    bfcvtn v4.4h, v0.4s
    str d4, [x1], #8
4:
    tbz x2, #1, 5f
    ldr d0, [x0], #8
    bfcvtn v4.4h, v0.4s
    str s4, [x1], #4
5:
    tbz x2, #0, 6f
    ldr s0, [x0]
    bfcvtn v4.4h, v0.4s
    str h4, [x1]
6:
    ret
end_function QUOLL_SYMBOL(quoll_narrow_f32_bf16)
