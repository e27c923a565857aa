// A panel of B by tiles of rows of A, as the drivers of products go through them.
#ifndef QUOLL_LAYER_CPU_GEMM_GEMM_TILES_H
#define QUOLL_LAYER_CPU_GEMM_GEMM_TILES_H

#include <algorithm>

#include "layer/cpu/gemm/gemm_panels.h"

namespace quoll {

// A panel of B and how its columns lie in C.
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

// Blocks of pairs of half floats are of so many pairs, or a multiple.
inline size_t k_unit(const GemmKernels& kernels) { return kernels.halves == 4 ? 4 : 1; }

// From C's first column to column n, of blocks so far apart. Product: GemmProblem or GemmMatrix.
template <class Product>
ptrdiff_t column_offset(const Product& g, size_t n, ptrdiff_t block) {
    if (n < g.c_pack) return (ptrdiff_t)n;  // row-major ones: two divisions less
    return (ptrdiff_t)(n / g.c_pack) * block + (ptrdiff_t)(n % g.c_pack);
}

// What the tiles that meet a panel's section fetch together.
struct PanelFetch {
    const float* rows;  // of a panel, so many as `k`; null: nothing
    size_t k, tiles;
    // That of tile `index`, of rows so many values further on.
    GemmFetch part(const GemmProblem& g, size_t index, size_t values = 0) const;
};

// Sections are about as long as each other, which is all that fetching needs.
inline size_t section_row(const GemmProblem& g, size_t section) {
    return g.k * section / g.num_sections;
}

// Floats of tiles that start from a residual, one behind the other.
const size_t kMaxStarts = 4 * kGemmMaxRows * 32;

// How many of `count` tiles, from the first one on, gemm_run_direct takes in one call: such as are
// alike, and start from a residual only where their rows of C follow each other.
inline size_t gemm_direct_tiles(const GemmProblem& g, const GemmRows* tiles, size_t count,
                                const GemmPanel& panel, size_t section) {
    const GemmRows& rows = tiles[0];
    count = std::min<size_t>(rows.alike, count);
    if (!g.residual || section > 0 || count == 1) return count;
    const bool dense = tiles[1].c - rows.c == rows.rows * rows.c_row;
    return dense ? std::min(count, kMaxStarts / (rows.rows * panel.width)) : 1;
}

// A panel by `count` tiles that are alike, for one section of k: where the kernel writes C itself.
void gemm_run_direct(const GemmProblem& g, const GemmRows* tiles, size_t count,
                     const GemmPanel& panel, size_t section, GemmFetch fetch);
// A panel by one tile, all sections in a buffer: for columns that the kernel cannot write itself.
// index: of the tile in what is fetched.
void gemm_run_buffered(const GemmProblem& g, const GemmRows& rows, const GemmPanel& panel,
                       const PanelFetch& fetch, size_t index);

}  // namespace quoll

#endif
