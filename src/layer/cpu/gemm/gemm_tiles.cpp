#include "layer/cpu/gemm/gemm_tiles.h"

#include <math.h>
#include <string.h>

#include <algorithm>

namespace quoll {

GemmPanel gemm_make_panel(const GemmProblem& g, size_t p) {
    const GemmKernels& kernels = *g.kernels->gemm;
    const size_t lanes = kernels.lanes;
    GemmPanel panel;
    panel.n0 = p * panel_columns(kernels);
    panel.b = g.b + gemm_b_size(kernels, panel.n0 * g.k);
    panel.width = panel_width(kernels, g.n, p);
    panel.used = g.whole_panels ? panel.width : std::min(panel.width, g.n - panel.n0);
    panel.tiles = kernels.tile[panel.width / kernels.step - 1];
    if (panel.n0 + panel.width <= g.c_pack && panel.used == panel.width) {  // in the first block
        panel.c = panel.residual = (ptrdiff_t)panel.n0;
        panel.c_vector = panel.residual_vector = (ptrdiff_t)lanes;
        panel.direct = true;
        return panel;
    }
    panel.c = column_offset(g, panel.n0, g.c_block);
    panel.residual = column_offset(g, panel.n0, g.residual_block);
    // With whole panels, the second vector may have no column of the matrix.
    const size_t next = g.whole_panels ? panel.n0 + lanes : std::min(panel.n0 + lanes, g.n - 1);
    panel.c_vector = column_offset(g, next, g.c_block) - panel.c;
    panel.residual_vector = column_offset(g, next, g.residual_block) - panel.residual;
    // Whole vectors at equal distances.
    panel.direct = panel.used == panel.width && (g.c_pack % lanes == 0 || g.c_pack >= g.n);
    for (size_t v = 2; panel.direct && v * lanes < panel.width; v++) {
        const ptrdiff_t at = column_offset(g, panel.n0 + v * lanes, g.c_block);
        panel.direct = at == panel.c + (ptrdiff_t)v * panel.c_vector;
    }
    return panel;
}

GemmFetch PanelFetch::part(const GemmProblem& g, size_t index, size_t values) const {
    if (!rows) return GemmFetch();
    const GemmKernels& kernels = *g.kernels->gemm;
    const size_t row = gemm_b_size(kernels, panel_columns(kernels)) * sizeof(float);
    return fetch_part(rows + gemm_b_size(kernels, values), k, row, index, tiles);
}

namespace {

// Stands in for B in a section without blocks, and for A: four pairs of rows of 128 half floats.
alignas(64) float g_zeros[512];  // never written; as a constant it would be 2 KB of the file
const GemmBlock kZeroBlock = {0, 0};
// Floats of the largest tile on any ISA: 16 rows of two AVX-512 vectors (5 of 64 on SVE are fewer).
enum { kMaxTile = kGemmMaxRows * 32 };
static_assert(kMaxTile <= kMaxStarts, "a tile at least starts from a residual");

// Computes the sum over one section, from init to c.
void run_section(const GemmProblem& g, const GemmRows& rows, const GemmPanel& panel, size_t section,
                 GemmTile* tile) {
    const GemmSection& s = g.sections[rows.table * g.num_sections + section];
    if (s.num_blocks) {
        tile->a = g.a + rows.a;
        tile->a_row = rows.a_row;
        tile->a_k = g.a_k;
        tile->blocks = s.blocks;
        tile->num_blocks = s.num_blocks;
        tile->block_k = s.block_k;
        tile->block_step = s.block_step;
        tile->b = panel.b;
    } else {
        tile->a = tile->b = g_zeros;
        tile->a_row = tile->a_k = tile->a_tile = 0;
        tile->blocks = &kZeroBlock;
        tile->num_blocks = 1;
        tile->block_k = k_unit(*g.kernels->gemm);
        tile->block_step = 0;
    }
    panel.tiles[rows.rows - 1](*tile);
}

void start_from_bias(const GemmProblem& g, const GemmPanel& panel, GemmTile* tile) {
    tile->init = g.bias + panel.n0;
    tile->init_row = 0;
    tile->init_vector = g.kernels->gemm->lanes;
}

// Fills a tile [rows][width] with bias and residual.
void start_from_residual(const GemmProblem& g, const GemmRows& rows, const GemmPanel& panel,
                         float* init, GemmTile* tile) {
    const GemmKernels& kernels = *g.kernels->gemm;
    tile->init = init;
    tile->init_row = panel.width;
    tile->init_vector = kernels.lanes;
    if (panel.used < panel.width) std::fill_n(init, rows.rows * panel.width, 0.f);
    const float* r = g.residual + rows.c + panel.residual;
    GemmInit start = {r,          rows.c_row, g.residual_block, g.bias + panel.n0, rows.rows,
                      panel.used, init,       panel.width};
    const GemmInitKernel whole = g.c_pack == 1    ? kernels.init_1
                                 : g.c_pack == 4  ? kernels.init_4
                                 : g.c_pack == 8  ? kernels.init_8
                                 : g.c_pack == 16 ? kernels.init_16
                                                  : nullptr;
    if (whole && panel.n0 % g.c_pack == 0 && panel.used % g.c_pack == 0) return whole(start);
    // The columns that lie within one block of C.
    for (size_t j = 0; j < panel.used; j += start.count) {
        const size_t n = panel.n0 + j;
        start.r = g.residual + rows.c + column_offset(g, n, g.residual_block);
        start.r_block = 1;
        start.bias = g.bias + n;
        start.init = init + j;
        start.count = std::min(panel.used - j, g.c_pack - n % g.c_pack);
        kernels.init_1(start);
    }
}

// Applies the activation where C's vectors are whole, to runs that are as long as possible, in
// `tiles` tiles at equal distances.
void finish_direct(const GemmProblem& g, const GemmRows& rows, const GemmPanel& panel, float* c,
                   size_t tiles, ptrdiff_t step) {
    const size_t lanes = g.kernels->gemm->lanes, vectors = panel.width / lanes;
    // Contiguous vectors of a row, or contiguous rows of one vector, are one array.
    const bool whole_rows = panel.c_vector == (ptrdiff_t)lanes;
    const bool dense = !whole_rows && rows.c_row == (ptrdiff_t)lanes;
    size_t count = whole_rows ? panel.width : dense ? rows.rows * lanes : lanes;
    if (dense && step == (ptrdiff_t)count) count *= tiles, tiles = 1;
    for (size_t i = 0; i < tiles; i++, c += step)
        for (size_t v = 0; v < (whole_rows ? 1 : vectors); v++)
            for (int m = 0; m < (dense ? 1 : rows.rows); m++)
                g.activation.finish(c + (ptrdiff_t)v * panel.c_vector + m * rows.c_row, count);
}

// Writes the columns of a tile [rows][width] that make blocks of kPack in C. A copy of known length
// is a move or two; the general loop below takes several times as long for short ones.
template <size_t kPack>
void scatter_blocks(const GemmProblem& g, const GemmRows& rows, const GemmPanel& panel,
                    const float* tile) {
    float* block = g.c + rows.c + column_offset(g, panel.n0, g.c_block);
    for (size_t j = 0; j < panel.used; j += kPack, block += g.c_block) {
        float* out = block;
        const float* from = tile + j;
        for (int m = 0; m < rows.rows; m++, out += rows.c_row, from += panel.width)
            memcpy(out, from, kPack * sizeof(float));
    }
}

// Writes the columns of a tile [rows][width] to their places in C.
void scatter(const GemmProblem& g, const GemmRows& rows, const GemmPanel& panel,
             const float* tile) {
    if (g.c_pack == 1 && rows.c_row == 1)
        return g.kernels->gemm->store_columns(tile, panel.width, rows.rows, panel.used,
                                              g.c + rows.c + column_offset(g, panel.n0, g.c_block),
                                              g.c_block);
    if (g.c_pack == 1) return scatter_blocks<1>(g, rows, panel, tile);
    const bool whole = panel.n0 % g.c_pack == 0 && panel.used % g.c_pack == 0;
    if (whole && g.c_pack == 4) return scatter_blocks<4>(g, rows, panel, tile);
    if (whole && g.c_pack == 8) return scatter_blocks<8>(g, rows, panel, tile);
    for (size_t j = 0; j < panel.used;) {
        const size_t inside = (panel.n0 + j) % g.c_pack;
        const size_t run = std::min(panel.used - j, g.c_pack - inside);
        float* out = g.c + rows.c + column_offset(g, panel.n0 + j, g.c_block);
        for (int m = 0; m < rows.rows; m++, out += rows.c_row) {
            const float* from = tile + m * panel.width + j;
            for (size_t i = 0; i < run; i++) out[i] = from[i];
        }
        j += run;
    }
}

}  // namespace

void gemm_run_direct(const GemmProblem& g, const GemmRows* tiles, size_t count,
                     const GemmPanel& panel, size_t section, GemmFetch fetch) {
    alignas(64) float init[kMaxStarts];
    const GemmRows& rows = tiles[0];
    GemmTile tile;
    tile.more = count - 1;
    tile.a_tile = tile.c_tile = tile.init_tile = 0;
    if (count > 1) {
        tile.a_tile = tiles[1].a - rows.a, tile.c_tile = tiles[1].c - rows.c;
        if (section > 0) tile.init_tile = tile.c_tile;
    }
    tile.c = g.c + rows.c + panel.c;
    tile.c_row = rows.c_row;
    tile.c_vector = panel.c_vector;
    if (section > 0) {
        tile.init = tile.c;
        tile.init_row = tile.c_row;
        tile.init_vector = tile.c_vector;
    } else if (g.residual) {
        GemmRows all = rows;
        all.rows *= (int)count;
        start_from_residual(g, all, panel, init, &tile);
        tile.init_tile = rows.rows * (ptrdiff_t)panel.width;
    } else {
        start_from_bias(g, panel, &tile);
    }
    const bool last = section + 1 == g.num_sections;
    tile.low = last ? g.activation.low : -INFINITY;
    tile.high = last ? g.activation.high : INFINITY;
    tile.fetch = fetch;
    run_section(g, rows, panel, section, &tile);
    if (last && g.activation.pass) finish_direct(g, rows, panel, tile.c, count, tile.c_tile);
}

void gemm_run_buffered(const GemmProblem& g, const GemmRows& rows, const GemmPanel& panel,
                       const PanelFetch& fetch, size_t index) {
    alignas(64) float buffer[kMaxTile];
    GemmTile tile;
    tile.more = 0, tile.a_tile = 0;
    tile.c = buffer;
    tile.c_row = panel.width;
    tile.c_vector = g.kernels->gemm->lanes;
    if (g.residual)
        start_from_residual(g, rows, panel, buffer, &tile);
    else
        start_from_bias(g, panel, &tile);
    for (size_t s = 0; s < g.num_sections; s++) {
        tile.fetch = fetch.part(g, index, fetch.rows ? section_row(g, s) * panel.width : 0);
        const bool last = s + 1 == g.num_sections;
        tile.low = last ? g.activation.low : -INFINITY;
        tile.high = last ? g.activation.high : INFINITY;
        run_section(g, rows, panel, s, &tile);
        tile.init = tile.c;
        tile.init_row = tile.c_row;
        tile.init_vector = tile.c_vector;
    }
    g.activation.finish(buffer, rows.rows * panel.width);
    scatter(g, rows, panel, buffer);
}

}  // namespace quoll
