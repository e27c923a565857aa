// Matrix products of f32 values on tile units: those that multiply bf16 and add f32 (AMX, SME;
// vectors that multiply bf16), or f32 values themselves (SME).
//
// An f32 value is hi + mid + lo, three bf16 values that each hold eight of its 24 significant bits:
// hi is the value rounded to bf16, mid the remainder rounded, lo what is left; mid is at most 2^-8
// of the value, lo 2^-16. Of the nine products of two such sums
//   6  are as good as f32: the three left out are together at most 2^-23 of the product;
//   3  (hi hi, hi mid, mid hi) keep 16 bits: what is left out is at most 3 * 2^-16;
//   2  (hi hi, mid hi) keep 16 bits where B is bf16;
//   1  (hi hi) is bf16: at most 2^-7.
// The unit takes bf16 denormals as zero: mid and lo of values below 2^-110 in magnitude are partly
// lost. An infinite value, or one that rounds to infinity (from 3.39e38), gives NaN where the
// number of products is not 1: those who use the kernels then multiply on vectors.
//
// The contract is that of gemm.h with both operands split and laid out as tile_operands.h says.
#ifndef QUOLL_LAYER_CPU_GEMM_SPLIT_GEMM_H
#define QUOLL_LAYER_CPU_GEMM_SPLIT_GEMM_H

#include <stddef.h>
#include <stdint.h>

#include "layer/cpu/gemm/tile_operands.h"
#include "layer/cpu/unary/unary.h"

namespace quoll {

enum {
    kSplitK = 32,  // k of one step
    // Steps whose sum is one chain of additions; longer sums are added up from several.
    kSplitSection = 32
};

// One call computes tiles * tile_rows rows by the columns of a panel:
// sums[(i * tile_rows + m) * width + n], with the width of the panel, 32 or 16. A's 64 bytes of a
// step are 32 values of a term, those of the next terms follow. The panel is
// [step][term][column / 16][k / 2][column % 16][k % 2].
struct SplitTile : TileOperands {
    float* sums;  // aligned to 64 bytes
    // Of the steps from full_steps on, the last channels' or those of windows, only so many pairs
    // of k are not zero, an even number; kernels may multiply the others.
    size_t full_steps;
    int last_pairs;
    // Whether the sums begin with those that are there, as a kernel has left them. Only kernels
    // with `adds_sums` know that.
    bool adds = false;
    // Null: the panel's steps are taken in order; else which of them step s is. Only vectors
    // without lists (vector_macs) know these.
    const int32_t* b_steps;
    // From the first half of a row's values of a step to the second, bytes. Others than kernels of
    // vector_macs take 32, and 64 from a row to the next.
    ptrdiff_t half = kUnitRowBytes / 2;
};
typedef void (*SplitTileKernel)(const SplitTile& tile);

// Units that are entered and left at a cost, and others whose rows of A lie side by side
// (TileOperands::a_word), compute a list of tiles at a time: kUnitTiles tiles of rows of each, but
// `last` of the last one, by panels of width columns, 32 or 16. They may read words of the row
// behind the last one.
typedef void (*SplitListKernel)(const SplitTile* list, size_t count, size_t last, size_t width);

// What becomes of sums. Row m with the place p = rows[m] gives, unless p is negative, for each
// column n < columns
//     c[p + n / group * c_group + n % group] = clamp(bias[n] + sum + residual[p + n / group *
//     r_group + n % group])
// rounded to bf16 if `bf16`. Nothing beyond these values is written.
struct SplitStore {
    int width;
    const float* bias;  // of the width; or null
    void* c;            // floats, or bf16 values if `bf16`; so is the residual
    bool bf16;
    const int32_t* rows;
    int columns, group;  // group: 1, 2, 4, 8 or 16; but 16 it divides the columns
    ptrdiff_t c_group;
    const void* residual;  // may be null or c
    ptrdiff_t r_group;
    float low, high;  // a NaN sum stays NaN
    // Above 0, up to 1: what sums below zero are multiplied by before, where all columns are there
    // in groups of 16; elsewhere it does not count.
    float slope;
    // What is applied to the values before they are rounded, or null; where `slope` counts.
    UnaryKernel pass;
    const float* pass_params;
};
// sums: as a SplitTileKernel has left them, so many rows.
typedef void (*SplitStoreKernel)(const SplitStore& store, float* sums, int rows);

// Sums of two tiles of a full panel that go to C while the next are made: all columns, in groups of
// 16.
struct SplitEpilogue {
    SplitStore store;
    float* sums;  // aligned to 64 bytes
    int rows;     // 0 where there are no sums
};
// The sums of one tile of a full panel to C at once, without residual, slope and pass: all
// columns, in groups of 16. The tile has no place for sums.
typedef void (*SplitDirectKernel)(const SplitTile& tile, const SplitStore& store);
typedef void (*SplitChainKernel)(const SplitTile& tile, const SplitEpilogue& epilogue);

// Tiles of a convolution of few channels whose input, bf16, lies pixel after pixel, so that the
// taps of a row of the window follow each other: they are `steps` steps of k of step_bytes, a
// multiple of 4 up to kUnitRowBytes. Row m of tile i reads the windows from a[i] + m * a_row on,
// whose rows are a_tap_row bytes apart, and gives sums[(i * kUnitRows + m) * 16 + n]. B, of 16
// columns, is [row of taps][k / 2][n][k % 2].
enum { kSplitTapTiles = 4 };
struct SplitTaps {
    const char* a[kSplitTapTiles];
    ptrdiff_t a_row, a_tap_row;
    int tap_rows, steps, step_bytes;
    const char* b;
    float* sums;  // aligned to 64 bytes
};
struct SplitTapKernels {
    void (*begin)(int step_bytes);  // in place of SplitGemmKernels::begin
    void (*run)(const SplitTaps& taps);
};

struct SplitStoreKernels {
    SplitStoreKernel store;
    SplitStoreKernel settle;  // the same into the sums themselves, as floats
};

// Splits `pixels` pixels of up to 32 channels. Channel c of pixel p is
// src[p * src_pixel + c / pack * src_block + c % pack]; its term t goes to
// dst[p * dst_pixel + t * 32 + c]; channels from `channels` to 31 are zero. dst is aligned to 64
// bytes and dst_pixel a multiple of 32. src holds floats, or bf16 values for the kernels that copy.
// Kernels with lists: word w of pixel p, channel w or the bf16 channels 2 w and 2 w + 1, of quads
// 4 w to 4 w + 3, goes to dst + p * dst_pixel + w * dst_word, where dst_pixel is a word and dst is
// aligned to that.
struct SplitInput {
    const void* src;
    ptrdiff_t src_pixel, src_block;
    int channels;
    size_t pixels;
    uint16_t* dst;
    ptrdiff_t dst_pixel, dst_word;
};
typedef void (*SplitInputKernel)(const SplitInput& input);

// Windows x to x + count of a row of up to kSplitPixel planar channels: value i * kSplitPixel + c
// of one is channel c of its pixel i, zero beyond the row and the channels. Channel c of pixel p is
// src[p + c * src_block]; the term t of window w goes to dst[w * dst_window + t * 32], 32 values;
// with lists word i of it to dst + w * dst_window + i * dst_word, as of SplitInput.
enum { kSplitPixel = 4 };
struct SplitWindows {
    const void* src;
    ptrdiff_t src_block;
    int channels;
    WindowRow row;
    ptrdiff_t x;
    size_t count;
    uint16_t* dst;
    ptrdiff_t dst_window, dst_word;
};
typedef void (*SplitWindowKernel)(const SplitWindows& windows);

// Packs the panel of `columns` columns of B, of k values each: value (k, n) at src[k * k_step + n *
// n_step], where one of the steps is 1. Zeros beyond, up to whole steps and 32 columns, or 16 where
// there are no more. dst is aligned to 64 bytes.
struct SplitPanel {
    const float* src;
    size_t k_step, n_step, k, columns;
    uint16_t* dst;
};
typedef void (*SplitPackKernel)(const SplitPanel& panel);

// A row of scores becomes the exponentials of its softmax, undivided, in place, as bf16 terms:
// value i is the sum of ((uint16_t*)row)[i / 32 * 32 * terms + t * 32 + i % 32] over the terms t.
// Values from n up to whole steps are zero. Gives their sum; 1 and zeros where all scores are minus
// infinity.
struct SplitSoftmax {
    float* row;  // scores
    size_t n;    // > 0
    float scale;
    const void* mask;  // added to the scaled scores: floats, or bf16 if `bf16_mask`; or null
    bool bf16_mask;
};
typedef float (*SplitSoftmaxKernel)(const SplitSoftmax& t);

struct SplitGemmKernels {
    // 6 of 3 terms, 3 of 2, 1 of 1; f32 values in the room of 2 terms: 6. 2: A has two terms, which
    // lie where their f32 values would, those of a step after each other, and B one.
    int products, terms;
    // Before the first tile in a thread, with the tile_rows of all that follow, and after the last.
    void (*begin)(int tile_rows);
    void (*end)();
    SplitTileKernel tile[kUnitTiles][2];  // [tiles - 1][0: single-vector panel, 1: full]
    // As tile[1][1], for kSplitSection steps at most where there are several products, but the sums
    // stay in the units. Those of the call before, where `epilogue` has rows, go to epilogue.sums
    // and from there to C between the multiplications: alone they take as long as eight steps of a
    // product.
    SplitChainKernel chain[2];  // [epilogue.store.bf16]; null for bf16 of several products
    void (*end_chain)(const SplitEpilogue& epilogue);  // the last sums of a chain; there are some
    const SplitStoreKernels* to_c;
    SplitInputKernel input[4];  // for pack 1, 4, 8, 16
    SplitInputKernel copy[4];   // of bf16 values; null where there are more terms
    SplitWindowKernel windows;
    SplitWindowKernel copy_windows;  // as `copy`
    SplitPackKernel pack;
    // What the speed of the units is measured with: that many tile multiplications (between begin
    // and end), and that many fused multiply-adds of the widest f32 vectors. Null for emulated
    // ones.
    void (*spin_tiles)(int count);
    void (*spin_vectors)(int count);
    // In place of begin, end, tile, chain and end_chain, which are null then; or null.
    SplitListKernel list;
    // With lists: the rows, and the columns, that this machine's unit multiplies at a time, in a
    // cycle for each word of k. At most kUnitRows.
    int (*lanes)();
    bool floats;  // A and B are f32 values: a panel is [step][column / 16][k][column % 16]
    // Not 0: vectors do it, so many multiplications per cycle, as other vectors do fp32: there is
    // no unit to enter, to chain sums in or to wait for.
    int vector_macs;
    // With lists: words of A are four bf16 values, and a panel is [step][column / 16][k / 4][column
    // % 16][k % 4].
    bool quads;
    SplitDirectKernel direct;  // for tile[0][1]; or null
    // Rows of A of so many terms, which these kernels then read where they lie, by rows of bf16
    // values if it is one; or null.
    SplitSoftmaxKernel softmax;
    const SplitGemmKernels* two_products;   // of kernels of one: those of two; or null
    bool adds_sums;                         // tile and chain know SplitTile::adds
    const SplitTapKernels* taps = nullptr;  // or null
    SplitPackKernel pack_bf16 = nullptr;    // see bf16_packing()
    // `pack` of bf16 values, to which src points; or null. Kernels of one product have that of two.
    SplitPackKernel bf16_packing() const {
        return two_products ? two_products->pack_bf16 : pack_bf16;
    }
    int b_terms() const { return products == 2 ? 1 : terms; }
    int word_bytes() const { return quads ? 8 : 4; }
};
// How much longer than usual the units take to multiply, at least 1, as measured over about 2 ms by
// the first call: some processors hold them back for seconds on end. Only what has the same bits on
// vectors may look at that.
double split_slowness();

// ---------------------------------------------------------------- B

inline size_t split_steps(size_t k) { return (k + kSplitK - 1) / kSplitK; }
// bf16 values of the packed B of n columns and `steps` steps, two for an f32 value. Panel p begins
// at p * split_panel_size.
size_t split_packed_size(int terms, size_t n, size_t steps);
size_t split_panel_size(int terms, size_t steps);
// Value (n, k) at src[n * ld + order[k]]; a negative order, and columns beyond n, are zero. `order`
// has 32 entries per step.
void split_pack(const SplitGemmKernels& kernels, const float* src, size_t ld, const int* order,
                size_t n, size_t steps, uint16_t* packed);
// The inverse, also of SplitGemmKernels::pack (order null: k itself): the sums of the terms; what
// was rounded to infinity is that.
void split_unpack(const SplitGemmKernels& kernels, const uint16_t* packed, const int* order,
                  size_t n, size_t k, size_t ld, float* dst);

}  // namespace quoll

#endif
