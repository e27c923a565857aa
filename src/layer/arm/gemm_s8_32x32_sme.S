// An Int8ListKernel (layer/cpu/int8/int8_units.h) on the outer products of SME (SMOPA), for streaming vectors of 128 to 512 bits.
//
// As gemm_sme.inc, with these steps: a word of A is a k-group of four, and a pair of k-groups of neighbouring columns lies side
// by side in the panel, as the tiles of SMMLA want it. Two loads bring pairs of as many columns as a vector has words; UZP takes
// their first and second k-groups apart.
//
// Registers: x0: the tile, x1: tiles left, x2: tiles of rows of the last one, x3: width, x4: rows and columns at a time, x5:
// scratch, x6: words from a pair of B to the next, x7: tiles of rows, x8: first column, x9: first row, x10: steps, x11: steps
// left, x13: words of B done, x14, x15: A of both tiles of rows, first k-groups, x16, x28: second ones, x19: bytes from a k-group
// of A to the next, x20: words from a pair of A to the next, x21: words of A done, x22 to x25: B, each half of two vectors of
// columns, x26: pairs of a step, x27: pairs left. p0, p1: rows of both tiles, p2, p3: columns, p4 to p7: whether there is B.
#include "layer/arm/int8_unit_offsets.h"
#include "layer/arm/sme_macros.inc"

// Predicates of so many words, for each of their bytes.
.macro first_words predicate, count
    lsl \count, \count, #2
    whilelo \predicate\().b, xzr, \count
.endm

// Where columns from `first` on lie in the panel.
.macro columns_at to, predicate, first
    lsr x17, \first, #3
    add x17, x0, x17, lsl #3
    ldr x17, [x17, #INT8_UNIT_B_COLUMNS]
    and x5, \first, #7
    add x17, x17, x5, lsl #3
    ldr \to, [x0, #SPLIT_TILE_B]
    add \to, \to, x17
    cmp \first, x3
    csel x17, x4, xzr, lo
    first_words \predicate, x17
.endm

function QUOLL_SYMBOL(quoll_gemm_s8_32x32_sme)
    save_all
    save_lazy_za
    smstart
    cntw x4
10:  // a tile
    cmp x1, #1
    mov x7, #2
    csel x7, x2, x7, eq
    ldr x19, [x0, #SPLIT_TILE_A_WORD]
    lsr x20, x19, #1
    ldr x6, [x0, #INT8_UNIT_B_PAIR]
    lsr x6, x6, #2
    ldr x26, [x0, #INT8_UNIT_STEP_K_GROUPS]
    lsr x26, x26, #1
    mov x8, #0
20:  // two vectors of its columns
    sub x17, x3, x8
    cmp x17, x4
    csel x5, x4, x17, hi
    sub x17, x17, x5
    first_words p2, x5
    first_words p3, x17
    lsr x21, x4, #1
    mov x9, x8
    columns_at x22, p4, x9
    add x9, x9, x21
    columns_at x23, p5, x9
    add x9, x9, x21
    columns_at x24, p6, x9
    add x9, x9, x21
    columns_at x25, p7, x9
    mov x9, #0
30:  // some of its rows
    rows_left
    cmp x7, #2
    csel x5, x17, xzr, eq
    first_words p0, x17
    first_words p1, x5
    ldr x17, [x0, #INT8_UNIT_INIT]
    add x17, x17, x8, lsl #2
    ld1w {z0.s}, p2/z, [x17]
    ld1w {z1.s}, p3/z, [x17, x4, lsl #2]
    zero {za}
    addha za0.s, p0/m, p2/m, z0.s
    addha za1.s, p0/m, p3/m, z1.s
    addha za2.s, p1/m, p2/m, z0.s
    addha za3.s, p1/m, p3/m, z1.s
    ldp x10, x11, [x0, #SPLIT_TILE_STEPS]
    mov x13, #0
40:  // a step
    ldr x17, [x10], #8
    ldr x14, [x0, #SPLIT_TILE_A]
    ldr x15, [x0, #SPLIT_TILE_A_TILE]
    add x14, x14, x17
    add x14, x14, x9, lsl #2
    add x15, x15, x14
    add x16, x14, x19
    add x28, x15, x19
    mov x21, #0
    mov x27, x26
50:
    ld1w {z0.s}, p0/z, [x14, x21, lsl #2]
    ld1w {z1.s}, p1/z, [x15, x21, lsl #2]
    ld1w {z4.s}, p4/z, [x22, x13, lsl #2]
    ld1w {z5.s}, p5/z, [x23, x13, lsl #2]
    ld1w {z6.s}, p6/z, [x24, x13, lsl #2]
    ld1w {z7.s}, p7/z, [x25, x13, lsl #2]
    ld1w {z2.s}, p0/z, [x16, x21, lsl #2]
    ld1w {z3.s}, p1/z, [x28, x21, lsl #2]
    uzp1 z16.s, z4.s, z5.s
    uzp1 z17.s, z6.s, z7.s
    uzp2 z18.s, z4.s, z5.s
    uzp2 z19.s, z6.s, z7.s
    smopa za0.s, p0/m, p2/m, z0.b, z16.b
    smopa za1.s, p0/m, p3/m, z0.b, z17.b
    smopa za2.s, p1/m, p2/m, z1.b, z16.b
    smopa za3.s, p1/m, p3/m, z1.b, z17.b
    add x21, x21, x20
    add x13, x13, x6
    subs x27, x27, #1
    smopa za0.s, p0/m, p2/m, z2.b, z18.b
    smopa za1.s, p0/m, p3/m, z2.b, z19.b
    smopa za2.s, p1/m, p2/m, z3.b, z18.b
    smopa za3.s, p1/m, p3/m, z3.b, z19.b
    b.ne 50b
    subs x11, x11, #1
    b.ne 40b

    ldr x14, [x0, #INT8_UNIT_SUMS]
    madd x17, x9, x3, x8
    add x14, x14, x17, lsl #2
    ldrsw x15, [x0, #SPLIT_TILE_ROWS]
    mul x15, x15, x3
    add x15, x14, x15, lsl #2
    rows_left
    store_sums

    ldrsw x17, [x0, #SPLIT_TILE_ROWS]
    add x9, x9, x4
    cmp x9, x17
    b.lo 30b
    add x8, x8, x4, lsl #1
    cmp x8, x3
    b.lo 20b
    add x0, x0, #INT8_UNIT_SIZE
    subs x1, x1, #1
    b.ne 10b

    smstop
    restore_all
    ret
end_function QUOLL_SYMBOL(quoll_gemm_s8_32x32_sme)
