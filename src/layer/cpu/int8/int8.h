// Kernels of int8 matrix products with exact int32 sums, C = A B, and of what lies around them:
// rounding and laying out the activations, and turning sums into f32 or int8.
//
// k runs in k-groups of 32 bits, the operands of one lane of a dot product: four 8-bit values where
// the machine multiplies those (VNNI: u8 by s8, so that activations carry an offset of 128 and
// `init` takes it out again), else two 16-bit ones. A is read where it lies, B comes in panels, as
// gemm.h describes, in k-groups instead of floats.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_H
#define QUOLL_LAYER_CPU_INT8_INT8_H

#include <stddef.h>
#include <stdint.h>

#include "layer/cpu/gemm/gemm.h"

namespace quoll {

// What becomes of a tile's sums without their being stored: int8 of (float)sum * scale[n] +
// bias[n], rounded half to even, plus `zero`, within [low, high]; the scale is that of the result,
// too, and no value reaches 2^31. Rows of a vector v of columns lie one after another from c +
// columns[v * lanes] on.
struct Int8TileBytes {
    const float *scale, *bias;  // [width]
    int zero, low, high;
    int8_t* c;
    const ptrdiff_t* columns;
};

// sums[m * width + n] = init[n] + sum over k of A(m, k) B(k, n), where width is that of the panel:
// A's k-group k of row m is a[m * a_row + blocks[i].a + kk] and meets the panel's row blocks[i].k +
// kk, each `width` k-groups. At least one block of at least one k-group.
struct Int8Tile {
    const int32_t* a;
    ptrdiff_t a_row;
    const GemmBlock* blocks;
    size_t num_blocks, block_k;
    const int32_t *b, *init;
    int32_t* sums;
    // Not 0 (Int8Kernels::neighbour_rows): rows lie beside each other, and a row's k-groups so far
    // apart: A(m, k) is a[m + blocks[b].a + k * a_pair]. Of kernels of pairs (Int8Kernels::pairs) a
    // row's pairs do: A(m, 2 i + j) is a[2 m + blocks[b].a + i * a_pair + j].
    ptrdiff_t a_pair;
    // With a_pair: so many tiles more follow, whose A begins a_tile k-groups after that of the one
    // before, and their sums behind its sums.
    size_t more;
    ptrdiff_t a_tile;
    GemmFetch fetch;
    const Int8TileBytes* bytes;  // instead of `sums`, where Int8Kernels::stores_bytes; or null
    bool small;                  // A's values are -64 to 63 (Int8Kernels::small_is_faster)
};
typedef void (*Int8TileKernel)(const Int8Tile& tile);

// A tile's results to where they belong: y = clamp((float)sum * scale[n] + bias[n] + add), each
// step rounded, for the columns n < used; as f32, or as int8 of y * top_scale. Row m, column n goes
// to c[m * c_row + columns[n]], what is added at add[m * c_row + add_columns[n]]. Columns come in
// runs of `run` neighbours: the lanes, a smaller elempack, or 1; used is a multiple of it. The
// store_ kernels take y itself instead of sums. With `slope` (Int8Kernels::takes_slopes, finish_
// kernels without `affine` and limits) max(y, slope * y) is stored instead of y. With `affine`, a
// finite top_scale above 0 and nothing to add scale[n], bias[n] and the limits are multiplied by
// top_scale instead of y. c may be the sums, or `add`.
struct Int8Store {
    const void* sums;  // [rows][width]
    int rows;
    size_t width, used;
    const float *scale, *bias;  // [width]
    float low, high, top_scale, slope;
    bool affine;  // int8 as affine8.h has it, with top_zero
    int top_zero;
    void* c;
    ptrdiff_t c_row;
    const ptrdiff_t* columns;
    size_t run;
    const float* add;  // null: nothing
    const ptrdiff_t* add_columns;
};
typedef void (*Int8StoreKernel)(const Int8Store& store);

// `pixels` pixels of `channels` channels as elements of k-groups: value (p, c) at
// src[p * src_pixel + c / pack * src_block + c % pack] (pack is the kernel's) goes to
// dst[p * dst_pixel + c / dst_pack * dst_block + c % dst_pack]. f32 is rounded with `scale` as
// float2int8 does. channels is a multiple of pack and dst_pack one of pack and k_group; for pack 1
// the last k-group of a pixel is completed by zeros.
struct Int8Input {
    const void* src;
    ptrdiff_t src_pixel, src_block;
    int channels;
    size_t pixels;
    float scale;
    void* dst;
    ptrdiff_t dst_pixel, dst_block;
    int dst_pack;
};
typedef void (*Int8InputKernel)(const Int8Input& input);

// out[i] = float2int8(in[i] * scale).
typedef void (*Int8RoundKernel)(const float* in, size_t n, float scale, int8_t* out);

// Windows of single channels: the k-groups join kernel rows, and a tap is a column of such a
// k-group. k_groups[i]: value e is rows[e][i] plus the offset; `count` rows, k_group at most, what
// else a k-group has room for is unspecified.
struct Int8Rows {
    const int8_t* rows[4];
    int count;
    size_t n;
    int32_t* k_groups;
};
typedef void (*Int8RowsKernel)(const Int8Rows& rows);
// sums[x * pack + c] = init[c] + sum over taps of k_groups[x * step + taps[k] + c] by weight[k *
// pack
// + c], for x < count. pack is 4, 8 or 16 and no more than the lanes, or 1 where there is one.
struct Int8Windows {
    const int32_t* k_groups;
    size_t step;
    const ptrdiff_t* taps;
    int num_taps, pack;
    const int32_t *weight, *init;
    int32_t* sums;
    int count;
};
typedef void (*Int8WindowsKernel)(const Int8Windows& windows);

// Windows of 3x3 or 5x5 taps, one or two pixels apart, of four channels and without k-groups: for y
// < rows, x < width
//     sums[(y * width + x) * 4 + c] = init[c] + sum over taps of weight[ky * kernel + kx][c] by
//                                     in[y * in_step + ky * in_row + (x * stride + kx) * 4 + c].
// Kernels make four pixels at a time: of each row they read width, rounded up to such, times
// stride, and kernel - 1 pixels, and write up to 12 values behind the sums. Any two neighbouring
// taps, beginning with an even one, have weights with magnitudes of at most 255 together: their
// terms are added in 16 bits.
struct Int8WindowRows {
    const int8_t* in;
    ptrdiff_t in_row, in_step;
    const int8_t* weight;  // [kernel * kernel][16]: a tap's four channels four times
    const int32_t* init;   // [4]
    int32_t* sums;
    int width, rows;
};
typedef void (*Int8WindowRowsKernel)(const Int8WindowRows& windows);

// Winograd's algorithm for 3x3 taps in integers (int8_winograd.h), tiles of `height` by `width`
// outputs, each 4 or 3. Of `tiles` neighbouring tiles in a row, values `width` apart, the 36 points
// B^T d B, for 4 outputs with B^T = (2 3 -4 -3 2 0; 0 -2 -5 -1 2 0; 0 2 1 -5 2 0; 0 -1 -2 1 2 0; 0
// 2 -1 -2 1 0; 0 2 3 -4 -3 2), for 3 with (2 4 -2 -4 0; 0 -1 -3 -2 0; 0 3 3 -6 0; none; 0 5 0 -5 0;
// 0 -1 -2 1 2): value (y, x, c) of tile t at in[y * in_row + (width * t + x) * in_pixel + c], point
// p at out[p * out_point + t * out_tile + c], where there is such a point.
struct Int8WinogradInput {
    const int16_t* in;
    ptrdiff_t in_row, in_pixel;
    int channels, tiles, height, width;
    int16_t* out;
    ptrdiff_t out_tile, out_point;
};
typedef void (*Int8WinogradInputKernel)(const Int8WinogradInput& t);
// A^T m A / 900 of points sums[p * point + i], i < n, for 4 outputs with A^T = (1 1 1 1 8 0; 0 1 -1
// 2 -4 0; 0 1 1 4 2 0; 0 1 -1 8 -1 1), for 3 with (1 1 1 0 4 0; 0 1 -1 0 -2 0; 0 1 1 0 1 1). They
// may have wrapped, since 225 has an inverse: results are to lie within 30 bits. Output (y, x) of
// value i at out[y * width * n + (width * (i / columns) + x) * columns + i % columns]. n is a
// multiple of `columns` and that of the lanes.
const uint32_t kInverseOf225 = 0x87654321;  // modulo 2^32
struct Int8WinogradOutput {
    const int32_t* sums;
    size_t point, n, columns;
    int height, width;
    int32_t* out;
};
typedef void (*Int8WinogradOutputKernel)(const Int8WinogradOutput& t);

// Values with zero points (affine8.h): out[i] = int8 of in[i] / scale; out[i] = (in[i] - zero) *
// scale.
typedef void (*Int8ToAffineKernel)(const float* in, size_t n, float scale, int zero, int8_t* out);
typedef void (*Int8FromAffineKernel)(const int8_t* in, size_t n, float scale, int zero, float* out);
// A sum of two int8 values in fixed point, as simd/fixed_sums.h describes it.
struct Int8FixedSum {
    int32_t high_factors, low_factors, high_start, low_start;
    int shift;
};
// Kernels of some levels know it.
#if defined(__x86_64__) || defined(_M_X64)
constexpr bool kHasInt8FixedSums = true;
#else
constexpr bool kHasInt8FixedSums = false;
#endif
// out[i] = int8 of clamp(x op y) * top_scale, x = (a[i] - zero_a) * scale_a and y alike; without b,
// of clamp(x). out may be a or b. fixed: null, or what gives the same for all sums, at half the
// price.
struct Int8Affine {
    const int8_t *a, *b;
    size_t n;
    bool multiply;
    int zero_a, zero_b, top_zero;
    float scale_a, scale_b, top_scale, low, high;
    const Int8FixedSum* fixed;
    int8_t* out;
};
typedef void (*Int8AffineKernel)(const Int8Affine& t);
// out[i] = table[in[i] + 128], of 256 values; out may be in.
typedef void (*Int8LookUpKernel)(const int8_t* in, size_t n, const int8_t* table, int8_t* out);
// range[0] = min(range[0], in[i]), range[1] = max(range[1], in[i]); NaN is passed over.
typedef void (*Int8RangeKernel)(const float* in, size_t n, float* range);
// out[i] = sums[i] + a x[i] + b y[i], as integers that wrap, with y null for none; with scale, as
// f32: the same times scale[i], plus bias[i]. out may be sums.
struct Int8Terms {
    const int32_t *sums, *x, *y;
    size_t n;
    int32_t a, b;
    const float *scale, *bias;
    void* out;
};
typedef void (*Int8TermsKernel)(const Int8Terms& t);
// out[i] = max(a[i], b[i]); out may be one of them.
typedef void (*Int8MaxKernel)(const int8_t* a, const int8_t* b, size_t n, int8_t* out);

// Weights that share a scale in blocks of k, by f32 values: for `lanes` columns n
//     out[m * out_row + n] = sum over blocks of scale[block][n] * sum of a[m * a_row + k] * B(k, n)
// plus, where there are offsets, offset[block][n] * a_sum[m * a_sum_row + block];
// where b has a k-group a column for every 32 / bits of k: [k / (32 / bits)][2 * lanes], of two
// panels side by side, and points to one of them, for block_row to the first. A k-group's values of
// 8 bits are in order; of 4 bits byte i holds value i and, in its upper half, i + 4. k and block
// are multiples of 8.
struct BlockTile {
    const float* a;
    ptrdiff_t a_row;
    const struct BlockDigits* digits;  // of the rows, instead of a: what block_dot reads
    const struct ByteRows* bytes;      // instead of a: what block_bytes reads
    const void* b;
    const float *scale, *offset;  // [blocks][2 * lanes]; offset may be null
    const uint16_t* half_scale;   // f16; null: `scale`
    const float* a_sum;
    ptrdiff_t a_sum_row;
    size_t k, block;
    float* out;
    ptrdiff_t out_row;
};
typedef void (*BlockTileKernel)(const BlockTile& tile);

// A row of A as integers, for dot products of bytes: of each block a[k] is `unit` times an integer
// of 23 bits (three digits), which is as exact as f32 for the block's largest value, or of 15
// (two). Its digits to base 256, from -128 to 127, are digits[i * k] + .. with i = 0 for the
// highest; start[i] makes up for what is added to the weights, so that these have no sign.
struct BlockDigits {
    struct Block {
        float unit;
        int32_t start[3];
    };
    int8_t* digits;  // [3 or 2][k]
    Block* blocks;
};
// For weights of 4 or 8 bits; false: a value is infinite or NaN.
typedef bool (*BlockDigitsKernel)(const float* a, size_t k, size_t block, int bits, int digits,
                                  const BlockDigits& out);
// byte_rows rows of A, each block rounded to bytes of its largest value: a[k] is about `unit` times
// values[k / beside][row][k % beside], from -127 to 127; `start` as of BlockDigits.
struct ByteRows {
    struct Block {
        float unit;
        int32_t start;
    };
    int8_t* values;
    Block* blocks;  // [blocks][byte_rows]
    size_t beside;  // Int8Kernels::bytes_beside
};
// Of `rows` rows, the others are zero. Returns as BlockDigitsKernel.
typedef bool (*ByteRowsKernel)(const float* a, ptrdiff_t a_row, size_t rows, size_t k, size_t block,
                               int bits, const ByteRows& out);
// An unpack kernel: out[k * out_row + n] = scale[block][n] * B(k, n) + offset[block][n]; a is not
// read. The half_
// kernels read 16-bit floats, b as [k][lanes] of them, and no scales.
enum { kBlockRows = 4 };

struct Int8Kernels {
    const char* name;
    int lanes;
    int vectors;       // of a full panel; a single-vector one has a single vector
    int max_rows;      // tiles with 1 to max_rows rows exist
    int k_group;       // values of a k-group, 4 or 2; an element of A has 4 / k_group bytes
    int offset;        // added to activations
    int least_weight;  // that tiles take: -128 or -127
    int byte_rows;     // that block_bytes takes at once
    int bytes_beside;  // of a row, side by side as these are read: 4 or 8
    // Tiles take the panel's k-groups in pairs: 2 i and 2 i + 1 of a column are neighbours,
    // [k-groups / 2][width][2]; blocks begin with an even one and have an even number.
    bool pairs;
    // Not 0: tiles take rows that lie beside each other (Int8Tile::a_pair), of full panels, with
    // pairs of single vectors, too; and there is one of so many rows, which may be above max_rows.
    int neighbour_rows;
    bool stores_bytes;     // tiles know Int8TileBytes
    bool takes_slopes;     // stores know Int8Store::slope
    bool small_is_faster;  // of values of A from -64 to 63: four products fit 16 bits
    // Beside tiles of 16-bit values: the same with tiles of bytes, which add two products up in 16
    // bits, or null; and the inputs of these, k-groups of four.
    const Int8Kernels* bytes;
    Int8InputKernel bytes_f32[4], bytes_s8[4];
    // Beside tiles of bytes, where dot products of 16-bit values are half as fast as these: the
    // level's kernels with such tiles, of full panels alone, for Winograd's algorithm; or null.
    const Int8Kernels* s16;
    // By hand, where there are such: of 3x3 and of 5x5 taps, one and two pixels apart.
    Int8WindowRowsKernel window_rows[2][2];
#define QUOLL_INT8_TILES(name, vectors) Int8TileKernel name[kGemmMaxRows];  // [rows - 1]
#define QUOLL_INT8_S16(name, vectors) Int8TileKernel name[kGemmMaxRows];    // [rows - 1]
#define QUOLL_INT8_INPUT(name, type) Int8InputKernel name[4];               // for pack 1, 4, 8, 16
// For weights of 4 and of 8 bits; the half_ ones for f16 and bf16; block_dot, which reads digits,
// is null where the processor has no dot products of bytes, as block_bytes, which reads ByteRows,
// and block_row[digits - 2], which takes one row and two neighbouring panels at once; but AVX2 has
// these two for weights of 4 bits anyway.
#define QUOLL_BLOCK_TILES(name) BlockTileKernel name[kBlockRows][2];  // [rows - 1]
#define QUOLL_BLOCK_DOTS(name) BlockTileKernel name[kBlockRows][2];
#define QUOLL_BLOCK_BYTES(name) BlockTileKernel name[2];
#define QUOLL_BLOCK_ROWS(name) BlockTileKernel name[2][2];
#define QUOLL_BLOCK_UNPACK(name) BlockTileKernel name[2];
#define QUOLL_INT8(type, name) type name;
#include "layer/cpu/int8/kernels.inc"
#undef QUOLL_INT8_TILES
#undef QUOLL_INT8_S16
#undef QUOLL_INT8_INPUT
#undef QUOLL_BLOCK_TILES
#undef QUOLL_BLOCK_DOTS
#undef QUOLL_BLOCK_BYTES
#undef QUOLL_BLOCK_ROWS
#undef QUOLL_BLOCK_UNPACK
#undef QUOLL_INT8
};

}  // namespace quoll

#endif
