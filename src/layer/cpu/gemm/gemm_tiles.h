// Multiplies a panel of B by tiles of rows of A, for the drivers of products.
#ifndef QUOLL_LAYER_CPU_GEMM_GEMM_TILES_H
#define QUOLL_LAYER_CPU_GEMM_GEMM_TILES_H

#include <algorithm>

#include "layer/cpu/gemm/gemm_panels.h"

namespace quoll {

// A panel of B, and the layout of its columns in C.
struct GemmPanel {
    const float* b;
    size_t n0, width;  // columns [n0, n0 + width), of which `used` exist
    size_t used;
    const GemmTileKernel* tiles;
    ptrdiff_t c, c_vector;  // floats from C's first column
    ptrdiff_t residual, residual_vector;
    bool direct;  // whole vectors of C: the kernel writes them itself
};

GemmPanel gemm_make_panel(const GemmProblem& g, size_t p);

// Blocks of pairs of half floats have this many pairs, or a multiple.
inline size_t k_unit(const GemmKernels& kernels) { return kernels.halves == 4 ? 4 : 1; }

// The distance from C's first column to column n, for blocks of this step. Product: GemmProblem or
// GemmMatrix.
template <class Product>
ptrdiff_t column_offset(const Product& g, size_t n, ptrdiff_t block) {
    if (n < g.c_pack) return (ptrdiff_t)n;  // row-major ones: two divisions less
    return (ptrdiff_t)(n / g.c_pack) * block + (ptrdiff_t)(n % g.c_pack);
}

// What the tiles that are multiplied by a panel's section prefetch together.
struct PanelFetch {
    const float* rows;  // of a panel, so many as `k`; null: nothing
    size_t k, tiles;
    // The part of tile `index`; `values`: that many values further on.
    GemmFetch part(const GemmProblem& g, size_t index, size_t values = 0) const;
};

// Sections have about the same length, which is all that prefetching needs.
inline size_t section_row(const GemmProblem& g, size_t section) {
    return g.k * section / g.num_sections;
}

// Floats of consecutive tiles that start from a residual.
const size_t kMaxStarts = 4 * kGemmMaxRows * 32;

// How many of `count` tiles, from the first one on, gemm_run_direct takes in one call: tiles that
// are alike, and that start from a residual only if their rows of C are contiguous.
inline size_t gemm_direct_tiles(const GemmProblem& g, const GemmRows* tiles, size_t count,
                                const GemmPanel& panel, size_t section) {
    const GemmRows& rows = tiles[0];
    count = std::min<size_t>(rows.alike, count);
    if (!g.residual || section > 0 || count == 1) return count;
    const bool dense = tiles[1].c - rows.c == rows.rows * rows.c_row;
    return dense ? std::min(count, kMaxStarts / (rows.rows * panel.width)) : 1;
}

// Multiplies a panel by `count` tiles that are alike, for one section of k; the kernel writes C
// itself.
void gemm_run_direct(const GemmProblem& g, const GemmRows* tiles, size_t count,
                     const GemmPanel& panel, size_t section, GemmFetch fetch);
// Multiplies a panel by one tile, with all sections summed in a buffer: for columns that the kernel
// cannot write itself. index: the number of the tile, for prefetching.
void gemm_run_buffered(const GemmProblem& g, const GemmRows& rows, const GemmPanel& panel,
                       const PanelFetch& fetch, size_t index);

}  // namespace quoll

#endif
