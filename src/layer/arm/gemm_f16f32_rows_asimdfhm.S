// GemmTileKernels (layer/cpu/gemm/gemm.h) of 4 to 6 rows (w9; gemm_f16f32_*x16_asimdfhm.S) by 16 columns whose A and B are
// half floats and whose sums are fp32. FMLAL multiplies half floats and adds the product to a sum of fp32, rounding once:
// answers are the bits that FMLA gives for the same values widened to fp32.
//
// To the driver a float of A is two half floats, and a step of k two, with two rows of the panel one behind the other, as
// in tiles of pairs (gemm_neon.inc). Blocks are of two such steps, the four channels of a pixel, and equally far apart, as
// are their rows of the panel; rows are neighbours. Four steps of k of six rows take three loads for 96 multiply-adds: one of A,
// and two of the panel, each of two rows. All tiles share what goes before and behind the loop, which a library has room for once.
//
// Registers: v8 + 4 m to v11 + 4 m: sums of row m. v0 to v2: A, two rows each (FMLAL takes lanes of v0 to v15 alone). v4
// to v7: the panel. x0: the GemmTile, x1, x2: from row to row and from vector to vector of what sums start from, and of C; x3, x6,
// x7: where these are; x4: A, x5: from block to block, x8: tiles left, w9: rows, x10: A of the tile, x11: B, x12: the panel,
// x13: what is done for a number of rows, x15: blocks left, x16: init, x17: c. Strides are in bytes.
#include "layer/arm/gemm_tile_offsets.h"
#include "layer/arm/macros.inc"

// A row: its lane of v\a by 16 columns, in v\b0 and v\b1.
.macro multiply_row s0, s1, s2, s3, b0, b1, a, lane
    fmlal v\s0\().4s, v\b0\().4h, v\a\().h[\lane]
    fmlal2 v\s1\().4s, v\b0\().4h, v\a\().h[\lane]
    fmlal v\s2\().4s, v\b1\().4h, v\a\().h[\lane]
    fmlal2 v\s3\().4s, v\b1\().4h, v\a\().h[\lane]
.endm

.macro step rows, lane, b0, b1
    multiply_row 8, 9, 10, 11, \b0, \b1, 0, \lane
    multiply_row 12, 13, 14, 15, \b0, \b1, 0, (\lane + 4)
    multiply_row 16, 17, 18, 19, \b0, \b1, 1, \lane
    multiply_row 20, 21, 22, 23, \b0, \b1, 1, (\lane + 4)
.if \rows > 4
    multiply_row 24, 25, 26, 27, \b0, \b1, 2, \lane
.endif
.if \rows > 5
    multiply_row 28, 29, 30, 31, \b0, \b1, 2, (\lane + 4)
.endif
.endm

.macro load_rows rows
.if \rows == 4
    ld1 {v0.2d, v1.2d}, [x4], x5
.elseif \rows == 5
    ldr d2, [x4, #32]
    ld1 {v0.2d, v1.2d}, [x4], x5
.else
    ld1 {v0.2d, v1.2d, v2.2d}, [x4], x5
.endif
.endm

// All blocks of a tile of so many rows, then what follows.
.macro blocks rows, next
    cmp w9, #\rows
    b.ne \next\()f
80:
    load_rows \rows
    ld1 {v4.8h, v5.8h, v6.8h, v7.8h}, [x12], #64
    step \rows, 0, 4, 5
    step \rows, 1, 6, 7
    ld1 {v4.8h, v5.8h, v6.8h, v7.8h}, [x12], #64
    step \rows, 2, 4, 5
    step \rows, 3, 6, 7
    subs x15, x15, #1
    b.ne 80b
    b 90f
\next\():
.endm

// Row m from x3, or to x3, of so many; vectors are x2, x6 and x7 behind the first.
.macro move_row name, m, s0, s1, s2, s3, done
    \name q\s0, [x3]
    \name q\s1, [x3, x2]
    \name q\s2, [x3, x6]
    \name q\s3, [x3, x7]
.if \m > 2
    cmp w9, #(\m + 1)
    b.eq \done\()f
.endif
    add x3, x3, x1
.endm

.macro move_rows name, done
    lsl x1, x1, #2
    lsl x2, x2, #2
    lsl x6, x2, #1
    add x7, x6, x2
    move_row \name, 0, 8, 9, 10, 11, \done
    move_row \name, 1, 12, 13, 14, 15, \done
    move_row \name, 2, 16, 17, 18, 19, \done
    move_row \name, 3, 20, 21, 22, 23, \done
    move_row \name, 4, 24, 25, 26, 27, \done
    \name q28, [x3]
    \name q29, [x3, x2]
    \name q30, [x3, x6]
    \name q31, [x3, x7]
\done\():
.endm

// A NaN stays one: FMAX and FMIN return it. All sums, whether there are such or not.
.macro limit_sums name
.irp sum, v8.4s, v9.4s, v10.4s, v11.4s, v12.4s, v13.4s, v14.4s, v15.4s, v16.4s, v17.4s, v18.4s, v19.4s, v20.4s, v21.4s, v22.4s, v23.4s, v24.4s, v25.4s, v26.4s, v27.4s, v28.4s, v29.4s, v30.4s, v31.4s
    \name \sum, \sum, v0.4s
.endr
.endm

function QUOLL_SYMBOL(quoll_gemm_f16f32_rows_asimdfhm)
    save_vectors
    ldr x10, [x0, #GEMM_TILE_A]
    ldr x11, [x0, #GEMM_TILE_B]
    ldr x16, [x0, #GEMM_TILE_INIT]
    ldr x17, [x0, #GEMM_TILE_C]
    ldr x8, [x0, #GEMM_TILE_MORE]
    ldr x14, [x0, #GEMM_TILE_BLOCKS]
    ldp x4, x12, [x14]
    add x10, x10, x4, lsl #2
    add x11, x11, x12, lsl #6
50:
    mov x3, x16
    ldp x1, x2, [x0, #GEMM_TILE_INIT_ROW]
    move_rows ldr, 60
    mov x4, x10
    mov x12, x11
    ldr x5, [x0, #GEMM_TILE_BLOCK_STEP]
    ldr x15, [x0, #GEMM_TILE_NUM_BLOCKS]
    lsl x5, x5, #2
    blocks 6, 75
    blocks 5, 74
    blocks 4, 73
90:
    // Sums that no limit is set for are not compared with it.
    ldp w4, w5, [x0, #GEMM_TILE_LOW]
    mov w6, #0x7f800000  // infinity
    mov w7, #0xff800000
    cmp w4, w7
    b.eq 91f
    dup v0.4s, w4
    limit_sums fmax
91:
    cmp w5, w6
    b.eq 92f
    dup v0.4s, w5
    limit_sums fmin
92:
    mov x3, x17
    ldp x1, x2, [x0, #GEMM_TILE_C_ROW]
    move_rows str, 61
    subs x8, x8, #1
    b.lo 93f
    ldp x6, x7, [x0, #GEMM_TILE_A_TILE]
    ldr x5, [x0, #GEMM_TILE_C_TILE]
    add x10, x10, x6, lsl #2
    add x16, x16, x7, lsl #2
    add x17, x17, x5, lsl #2
    b 50b
93:
    restore_vectors
    ret
end_function QUOLL_SYMBOL(quoll_gemm_f16f32_rows_asimdfhm)
