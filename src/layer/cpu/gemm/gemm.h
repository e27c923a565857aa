// Kernels of matrix multiplication, C = A B: the one contract that carries convolution, inner
// products and their like.
//
// B (weights) is packed into panels: `columns` = vectors * lanes columns wide, for each k one row
// of `columns` floats (or half floats: GemmKernels::values), zero beyond the matrix' edge. A
// (activations) is read in place, without a copy: the value of row m and index k is
//     a[blocks[i].a + m * a_row + kk * a_k]     for k = the sum of the earlier blocks' k, plus kk,
// and meets the panel's row blocks[i].k + kk. So a row-major matrix is one block with a_k = 1, its
// transpose one with a_row = 1, and a convolution's input is one block for each tap of the window
// and each group of channels: no im2col.
#ifndef QUOLL_LAYER_CPU_GEMM_GEMM_H
#define QUOLL_LAYER_CPU_GEMM_GEMM_H

#include <stddef.h>

namespace quoll {

struct GemmBlock {
    ptrdiff_t a;  // floats from GemmTile::a
    size_t k;     // rows of the panel from GemmTile::b
};

// What is prefetched into the second-level cache while a tile is computed: `step` bytes for each k;
// or null. Prefetching beyond the end of the data is harmless. Over the tiles of a call it goes on
// from one to the next. Kernels may fetch less: narrow tiles, whose loads take longer than their
// sums, fetch nothing.
struct GemmFetch {
    const char* from;
    size_t step;
};

// One call computes `rows` x `columns` values (rows is the kernel's, see GemmKernels):
//     c[m * c_row + v * c_vector + lane] = clamp(init[m * init_row + v * init_vector + lane] + sum)
// for each row m, vector v and lane. No pointer needs alignment; nothing beyond these values is
// read or written. init may be c. The sum runs over at least one block of at least one k, in order,
// fp32. `more` further tiles follow, each a_tile, init_tile and c_tile floats further on.
struct GemmTile {
    const float* a;
    ptrdiff_t a_row, a_k;
    const GemmBlock* blocks;
    size_t num_blocks, block_k;
    const float* b;
    const float* init;
    ptrdiff_t init_row, init_vector;
    float* c;
    ptrdiff_t c_row, c_vector;
    float low, high;  // a NaN sum stays NaN
    GemmFetch fetch;
    size_t more;
    ptrdiff_t a_tile, init_tile, c_tile;
    ptrdiff_t block_step;  // floats from each block's A to the next one's if all are so far apart
                           // and their rows of the panel follow each other; 0: not known
};
typedef void (*GemmTileKernel)(const GemmTile& tile);

enum { kGemmMaxRows = 16, kGemmMaxWidths = 4 };

// Packs columns 0 <= n < count (at most `columns`) of B, of k rows each, into one panel:
//     row-major: value (k, n) at src[k * ld + n]; column-major: at src[n * ld + k].
typedef void (*GemmPackPanel)(const float* src, size_t ld, size_t k, size_t count, size_t columns,
                              float* panel);

// out[n] = clamp(init[n] + sum over k of a[k * a_k] * panel row k) for one row of A and `count`
// columns of consecutive full panels, the last of which may be used in part. It reads several
// panels at once, since a single stream does not saturate the memory.
typedef void (*GemmVectorKernel)(const float* a, ptrdiff_t a_k, size_t k, const float* b,
                                 size_t count, const float* init, float* out, float low,
                                 float high);

// The start values of a tile with a residual: init[m * init_row + j] = bias[j] + column j of the
// residual, which is at r[m * r_row + j / pack * r_block + j % pack], for m < rows and j < count, a
// multiple of pack.
struct GemmInit {
    const float* r;
    ptrdiff_t r_row, r_block;
    const float* bias;
    int rows;
    size_t count;
    float* init;
    size_t init_row;
};
typedef void (*GemmInitKernel)(const GemmInit& start);

// Writes a tile [rows][width] as columns that are contiguous each:
//     out[j * out_column + m] = tile[m * width + j]    for m < rows, j < columns.
// width is a multiple of the lanes.
typedef void (*GemmColumnsKernel)(const float* tile, size_t width, int rows, size_t columns,
                                  float* out, ptrdiff_t out_column);

// A product in which neighbouring rows of A are contiguous (pixels of a planar blob), and those of
// C too. It computes part of a panel: kPlanarVectors * lanes rows by the kernel's number of
// columns,
//     out[n * out_step + m] = clamp(bias[n] + the sum over i < k of
//                                   in[i * in_step + m] * b[i * b_step + n])
// in the order of i. All values are fp32 or, with twice as many pixels at once, half floats. The
// first `used` columns, at least 1, are written; bias and B have all of them. No pointer needs
// alignment; k is at least 1.
struct GemmPlanarTile {
    const void* in;
    ptrdiff_t in_step;
    size_t k;
    const void* b;
    size_t b_step;
    const void* bias;
    void* out;
    ptrdiff_t out_step;
    size_t used;
    float low, high;  // a NaN sum stays NaN
};
typedef void (*GemmPlanarKernel)(const GemmPlanarTile& tile);
enum { kPlanarVectors = 3, kPlanarHalfPixels = 24, kPlanarColumns = 4, kPlanarWidths = 2 };

struct GemmNarrowKernels;  // narrow_gemm.h

struct GemmKernels {
    int lanes;
    int vectors;   // of `lanes` columns, of a full panel; the last one may have fewer
    int max_rows;  // tiles with 1 to max_rows rows exist
    int step;      // columns: widths of panels are multiples of it
    int halves;    // that a value of B has the room of: 2 of a float, 1 of a half float; 4 where
                   // each float of A and C is two half floats (f16_kernels.h)
    bool blocks;   // tiles like A best in blocks of `lanes` values of k, those of neighbouring rows
                   // side by side
    // [width / step - 1][rows - 1]; null beyond the full width and max_rows
    GemmTileKernel tile[kGemmMaxWidths][kGemmMaxRows];
#define QUOLL_GEMM_PACK(name) GemmPackPanel name;
#define QUOLL_GEMM_VECTOR(name) GemmVectorKernel name;
#define QUOLL_GEMM_INIT(name, pack) GemmInitKernel name;
#include "layer/cpu/gemm/kernels.inc"
#undef QUOLL_GEMM_PACK
#undef QUOLL_GEMM_VECTOR
#undef QUOLL_GEMM_INIT
    GemmColumnsKernel store_columns;
    const GemmNarrowKernels* narrow;
    // Kernels for kPlanarColumns columns, and for twice as many; null if there are none. For half
    // floats if each float of A and C is two.
    GemmPlanarKernel planar[kPlanarWidths];
};

}  // namespace quoll

#endif
