#include "layer/cpu/gemm/gemm_run.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "layer/common/scratch.h"
#include "layer/cpu/common/few_kernels.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

size_t panel_columns(const GemmKernels& kernels) { return (size_t)kernels.lanes * kernels.vectors; }

size_t panel_width(const GemmKernels& kernels, size_t n, size_t p) {
    return gemm_panel_width(kernels, n - p * panel_columns(kernels));
}

size_t panel_count(const GemmKernels& kernels, size_t n) {
    const size_t columns = panel_columns(kernels);
    return (n + columns - 1) / columns;
}

}  // namespace

// ---------------------------------------------------------------- B

size_t gemm_panel_width(const GemmKernels& kernels, size_t left) {
    const size_t step = kernels.step;
    size_t width = std::min((left + step - 1) / step * step, panel_columns(kernels));
    while (kFewKernels && width && !kernels.tile[width / step - 1][0]) width += step;
    return width;
}

size_t gemm_packed_size(const GemmKernels& kernels, size_t n, size_t k) {
    if (n == 0) return 0;
    const size_t last = panel_count(kernels, n) - 1;
    return gemm_b_size(kernels,
                       k * (last * panel_columns(kernels) + panel_width(kernels, n, last)));
}

size_t gemm_bias_size(const GemmKernels& kernels, size_t n) {
    return panel_count(kernels, n) * panel_columns(kernels);
}

void gemm_pack(const GemmKernels& kernels, const float* src, size_t ld, bool row_major, size_t n,
               size_t k, float* packed) {
    const size_t columns = panel_columns(kernels);
    const GemmPackPanel pack = row_major ? kernels.pack_row_major : kernels.pack_column_major;
    for (size_t p = 0; p * columns < n; p++) {
        const size_t n0 = p * columns;
        pack(src + (row_major ? n0 : n0 * ld), ld, k, std::min(columns, n - n0),
             panel_width(kernels, n, p), packed + gemm_b_size(kernels, n0 * k));
    }
}

void gemm_pack_ordered(const GemmKernels& kernels, const float* src, size_t ld, const int* order,
                       size_t n, size_t k, float* packed) {
    // A part of a panel, column by column in its new order, then as any column-major matrix.
    enum { kPart = 32, kMaxColumns = 128 };
    float part[kMaxColumns * kPart];
    const size_t columns = panel_columns(kernels);
    for (size_t n0 = 0; n0 < n; n0 += columns) {
        const size_t count = std::min(columns, n - n0);
        const size_t width = panel_width(kernels, n, n0 / columns);
        for (size_t k0 = 0; k0 < k; k0 += kPart) {
            const size_t rows = std::min<size_t>(kPart, k - k0);
            for (size_t j = 0; j < count; j++)
                for (size_t i = 0; i < rows; i++)
                    part[j * rows + i] = src[(n0 + j) * ld + order[k0 + i]];
            kernels.pack_column_major(part, rows, rows, count, width,
                                      packed + gemm_b_size(kernels, n0 * k + k0 * width));
        }
    }
}

Mat gemm_packed(const GemmKernels& kernels, const float* src, size_t ld, bool row_major, size_t n,
                size_t k, Allocator* allocator) {
    // Rows of one vector: a panel is a whole number of them, and its floats may exceed an int.
    const size_t rows = gemm_packed_size(kernels, n, k) / kernels.lanes;
    Mat packed(kernels.lanes, (int)rows, (size_t)4u, allocator);
    if (!packed.empty()) gemm_pack(kernels, src, ld, row_major, n, k, packed);
    return packed;
}

Mat gemm_bias(const GemmKernels& kernels, const float* bias, size_t n, Allocator* allocator) {
    Mat padded((int)gemm_bias_size(kernels, n), (size_t)4u, allocator);
    if (padded.empty()) return padded;
    padded.fill(0.f);
    if (bias) std::copy_n(bias, n, (float*)padded);
    return padded;
}

void gemm_unpack(const GemmKernels& kernels, const float* packed, size_t n, size_t k, float* dst) {
    const size_t columns = panel_columns(kernels);
    for (size_t j = 0; j < n; j++, dst += k) {
        const size_t p = j / columns, width = panel_width(kernels, n, p);
        const float* from = packed + p * columns * k + j % columns;
        for (size_t i = 0; i < k; i++) dst[i] = from[i * width];
    }
}

// ---------------------------------------------------------------- the product

GemmFetch fetch_part(const void* rows, size_t k, size_t row_bytes, size_t index, size_t tiles) {
    // With more parts of a smaller step each the last ones would come too late.
    const size_t parts = std::min<size_t>(kFetchTiles, tiles);
    if (tiles < 2 || index >= parts) return GemmFetch();
    const size_t step = (row_bytes + parts - 1) / parts;
    return {(const char*)rows + index * k * step, step};
}

void gemm_find_alike(GemmRows* rows, size_t count) {
    const auto alike = [](const GemmRows& x, const GemmRows& y) {
        return y.rows == x.rows && y.table == x.table && y.a_row == x.a_row && y.c_row == x.c_row;
    };
    for (size_t i = count; i-- > 0;) {
        rows[i].alike = 1;
        if (i + 1 == count || !alike(rows[i], rows[i + 1])) continue;
        const GemmRows *next = &rows[i + 1], *third = next + 1;
        const bool more = next->alike > 1 && next->a - rows[i].a == third->a - next->a &&
                          next->c - rows[i].c == third->c - next->c;
        rows[i].alike = more ? next->alike + 1 : 2;
    }
}

namespace {

// Stands for B where a section has no blocks, and for A there: four pairs of rows of 128 half
// floats.
alignas(64) const float kZeros[512] = {};
const GemmBlock kZeroBlock = {0, 0};
// Floats of the largest tile on any ISA: 16 rows of two AVX-512 vectors (5 of 64 on SVE are fewer).
enum { kMaxTile = kGemmMaxRows * 32 };

// A panel of B and how its columns lie in C.
struct Panel {
    const float* b;
    size_t n0, width;  // columns [n0, n0 + width), of which `used` exist
    size_t used;
    const GemmTileKernel* tiles;
    ptrdiff_t c, c_vector;  // floats from C's first column
    ptrdiff_t residual, residual_vector;
    bool direct;  // whole vectors of C: the kernel writes them itself
};

// Blocks of pairs of half floats are of so many pairs, or a multiple.
size_t k_unit(const GemmKernels& kernels) { return kernels.halves == 4 ? 4 : 1; }

ptrdiff_t column_offset(const GemmProblem& g, size_t n, ptrdiff_t block) {
    if (n < g.c_pack) return (ptrdiff_t)n;  // row-major ones: two divisions less
    return (ptrdiff_t)(n / g.c_pack) * block + (ptrdiff_t)(n % g.c_pack);
}

Panel make_panel(const GemmProblem& g, size_t p) {
    const GemmKernels& kernels = *g.kernels->gemm;
    const size_t lanes = kernels.lanes;
    Panel panel;
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
    // Of whole panels a second vector may have no column of the matrix.
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

// What the tiles that meet a panel's section fetch together.
struct Fetch {
    const float* rows;  // of a panel, so many as `k`; null: nothing
    size_t k, tiles;
    // That of tile `index`, of rows so many values further on.
    GemmFetch part(const GemmProblem& g, size_t index, size_t values = 0) const {
        if (!rows) return GemmFetch();
        const GemmKernels& kernels = *g.kernels->gemm;
        const size_t row = gemm_b_size(kernels, panel_columns(kernels)) * sizeof(float);
        return fetch_part(rows + gemm_b_size(kernels, values), k, row, index, tiles);
    }
};

// The sum over one section, from init to c.
void run_section(const GemmProblem& g, const GemmRows& rows, const Panel& panel, size_t section,
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
        tile->a = tile->b = kZeros;
        tile->a_row = tile->a_k = tile->a_tile = 0;
        tile->blocks = &kZeroBlock;
        tile->num_blocks = 1;
        tile->block_k = k_unit(*g.kernels->gemm);
        tile->block_step = 0;
    }
    panel.tiles[rows.rows - 1](*tile);
}

void start_from_bias(const GemmProblem& g, const Panel& panel, GemmTile* tile) {
    tile->init = g.bias + panel.n0;
    tile->init_row = 0;
    tile->init_vector = g.kernels->gemm->lanes;
}

// A tile [rows][width] of bias and residual.
void start_from_residual(const GemmProblem& g, const GemmRows& rows, const Panel& panel,
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

// Applies the activation where C's vectors are whole, to as long runs as there are in `tiles`
// tiles, a step from each other.
void finish_direct(const GemmProblem& g, const GemmRows& rows, const Panel& panel, float* c,
                   size_t tiles, ptrdiff_t step) {
    const size_t lanes = g.kernels->gemm->lanes, vectors = panel.width / lanes;
    // Vectors that follow each other in a row, or rows of one vector, are one array.
    const bool whole_rows = panel.c_vector == (ptrdiff_t)lanes;
    const bool dense = !whole_rows && rows.c_row == (ptrdiff_t)lanes;
    size_t count = whole_rows ? panel.width : dense ? rows.rows * lanes : lanes;
    if (dense && step == (ptrdiff_t)count) count *= tiles, tiles = 1;
    for (size_t i = 0; i < tiles; i++, c += step)
        for (size_t v = 0; v < (whole_rows ? 1 : vectors); v++)
            for (int m = 0; m < (dense ? 1 : rows.rows); m++)
                g.activation.finish(c + (ptrdiff_t)v * panel.c_vector + m * rows.c_row, count);
}

// A panel by `count` tiles that are alike.
void run_direct(const GemmProblem& g, const GemmRows* tiles, size_t count, const Panel& panel,
                size_t section, GemmFetch fetch) {
    alignas(64) float init[kMaxTile];
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
        start_from_residual(g, rows, panel, init, &tile);
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

// The columns of a tile [rows][width] that make blocks of kPack in C. A copy of known length is a
// move or two; the general loop below takes several times as long for short ones.
template <size_t kPack>
void scatter_blocks(const GemmProblem& g, const GemmRows& rows, const Panel& panel,
                    const float* tile) {
    float* block = g.c + rows.c + column_offset(g, panel.n0, g.c_block);
    for (size_t j = 0; j < panel.used; j += kPack, block += g.c_block) {
        float* out = block;
        const float* from = tile + j;
        for (int m = 0; m < rows.rows; m++, out += rows.c_row, from += panel.width)
            memcpy(out, from, kPack * sizeof(float));
    }
}

// From a tile [rows][width] to where its columns lie in C.
void scatter(const GemmProblem& g, const GemmRows& rows, const Panel& panel, const float* tile) {
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

// Sections are about as long as each other, which is all that fetching needs.
size_t section_row(const GemmProblem& g, size_t section) { return g.k * section / g.num_sections; }

// All sections in a buffer, for columns that the kernel cannot write itself.
void run_buffered(const GemmProblem& g, const GemmRows& rows, const Panel& panel,
                  const Fetch& fetch, size_t index) {
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

// Weights that would stay in the second-level cache have left it for those of other layers when
// their turn comes again. Narrow vectors read a panel no faster than it comes from the next cache.
bool fetches_panels(const GemmKernels& kernels, size_t bytes_of_b) {
    return kernels.lanes > 4 ? bytes_of_b >= 128 * 1024 : is_fetched(bytes_of_b);
}

// What is read when all `tiles` have met this panel's section: that of the next panel, or back at
// panel0 the section after it.
Fetch next_fetch(const GemmProblem& g, const Panel& panel, size_t section, size_t panel0,
                 size_t panel1, size_t tiles) {
    const GemmKernels& kernels = *g.kernels->gemm;
    if (!g.next_b && !fetches_panels(kernels, gemm_b_size(kernels, g.n * g.k) * sizeof(float)))
        return Fetch();
    Fetch fetch = {nullptr, g.k / g.num_sections, tiles};
    const size_t columns = panel_columns(kernels);
    const size_t row = section_row(g, section) * columns;
    if (g.next_b) {
        fetch.rows = g.next_b + gemm_b_size(kernels, panel.n0 * g.k + row);
    } else if (panel.n0 + columns < panel1 * columns) {
        fetch.rows = panel.b + gemm_b_size(kernels, columns * g.k + row);
    } else if (panel.direct && section + 1 < g.num_sections) {
        const size_t next = (panel0 * g.k + section_row(g, section + 1)) * columns;
        fetch.rows = g.b + gemm_b_size(kernels, next);
    }
    return fetch;
}

// Rows [row0, row1) by panels [panel0, panel1).
void run_chunk(const GemmProblem& g, size_t row0, size_t row1, size_t panel0, size_t panel1) {
    for (size_t s = 0; s < g.num_sections; s++) {
        for (size_t p = panel0; p < panel1; p++) {
            const Panel panel = make_panel(g, p);
            if (!panel.direct && s > 0) continue;
            const Fetch fetch = next_fetch(g, panel, s, panel0, panel1, row1 - row0);
            for (size_t r = row0, count; r < row1; r += count) {
                count = 1;
                if (!panel.direct) {
                    run_buffered(g, g.rows[r], panel, fetch, r - row0);
                    continue;
                }
                // Tiles that fetch are not among such as do not.
                const size_t end = std::min(
                    row1, fetch.rows && r < row0 + kFetchTiles ? row0 + kFetchTiles : row1);
                if (!g.residual || s > 0) count = std::min<size_t>(g.rows[r].alike, end - r);
                run_direct(g, g.rows + r, count, panel, s, fetch.part(g, r - row0));
            }
        }
    }
}

enum { kChunkBytes = 384 * 1024 };

// How the tasks of a product are cut, and whether those of a chunk of rows follow each other or
// those of a group of panels. A thread has a run of them, so that it reads a part of A alone, or of
// B, of which that is cut which is the larger.
struct Division {
    size_t chunks, groups;
    bool rows_first;
    Division(const GemmProblem& g, size_t chunk, size_t panels, size_t threads) {
        const size_t wanted = threads * 4;  // tasks, to even out what threads lose to others
        chunks = (g.num_rows + chunk - 1) / chunk;
        const double chunks_of_a = g.chunk ? (double)g.num_rows / (double)g.chunk : 1;
        const double a = chunks_of_a * kChunkBytes, b = (double)g.n * g.k * sizeof(float);
        rows_first = g.num_rows > 1 && a > b;
        if (rows_first) chunks = std::min(g.num_rows, round_up(chunks, threads));
        groups = (wanted + chunks - 1) / chunks;
        groups = std::min(panels, rows_first ? groups : round_up(groups, threads));
        // So few that some threads would have more than others.
        if (groups * chunks < wanted && groups * chunks % threads != 0)
            chunks = std::max(chunks, std::min(g.num_rows, (wanted + groups - 1) / groups));
    }
    static size_t round_up(size_t x, size_t step) { return (x + step - 1) / step * step; }
};

}  // namespace

size_t gemm_chunk(const GemmKernels& kernels, size_t a_floats, size_t c_floats) {
    const size_t budget = kChunkBytes / sizeof(float);
    const size_t rows = budget / std::max<size_t>(1, a_floats + c_floats);
    return std::max<size_t>(4, rows / kernels.max_rows);
}

void gemm_run(const GemmProblem& g, int threads) {
    const size_t panels = panel_count(*g.kernels->gemm, g.n);
    if (panels == 0 || g.num_rows == 0) return;
    const size_t chunk = g.chunk ? std::min(g.chunk, g.num_rows) : g.num_rows;
    if (threads <= 1) {
        for (size_t row = 0; row < g.num_rows; row += chunk)
            run_chunk(g, row, std::min(row + chunk, g.num_rows), 0, panels);
        return;
    }
    const Division d(g, chunk, panels, threads);
    run_tasks((int64_t)(d.chunks * d.groups), threads, [&](int64_t t, int) {
        const size_t c = d.rows_first ? t / d.groups : t % d.chunks;
        const size_t p = d.rows_first ? t % d.groups : t / d.chunks;
        // Longer partitions lie between shorter ones, so that runs of them are equally long.
        run_chunk(g, g.num_rows * c / d.chunks, g.num_rows * (c + 1) / d.chunks,
                  panels * p / d.groups, panels * (p + 1) / d.groups);
    });
}

// ---------------------------------------------------------------- plain matrices

namespace {
// One row of A: full panels by the kernel made for it, a narrower one through a buffer.
void row_times_matrix(const GemmMatrix& g, int threads) {
    const GemmKernels& kernels = *g.kernels->gemm;
    const size_t columns = panel_columns(kernels);
    size_t panels = panel_count(kernels, g.n);
    const size_t last = panel_width(kernels, g.n, panels - 1);
    const bool narrow = last != columns;
    if (narrow) {
        panels--;
        alignas(64) float buffer[64];
        const size_t n0 = panels * columns;
        const GemmBlock block = {0, 0};
        GemmTile tile = {g.a,
                         0,
                         g.a_k,
                         &block,
                         1,
                         g.k,
                         g.b + n0 * g.k,
                         g.bias + n0,
                         0,
                         kernels.lanes,
                         buffer,
                         0,
                         kernels.lanes,
                         g.activation.low,
                         g.activation.high,
                         GemmFetch(),
                         0,
                         0,
                         0,
                         0,
                         0};
        kernels.tile[last / kernels.step - 1][0](tile);
        memcpy(g.c + n0, buffer, (g.n - n0) * sizeof(float));
    }
    const size_t full = narrow ? panels * columns : g.n;
    const int partitions = (int)std::min<size_t>(std::max(threads, 1), panels);
    run_tasks(partitions, threads, [&](int64_t t, int) {
        const size_t n0 = partition_begin(panels, partitions, t) * columns;
        const size_t n1 = std::min(full, n0 + partition_length(panels, partitions, t) * columns);
        kernels.row_times_panels(g.a, g.a_k, g.k, g.b + n0 * g.k, n1 - n0, g.bias + n0, g.c + n0,
                                 g.activation.low, g.activation.high);
    });
    g.activation.finish(g.c, g.n);
}

// The rows of a matrix as nearly equal tiles, those of a row more first. partition_begin() and
// partition_length() would divide anew for each.
class RowTiles {
public:
    RowTiles(const GemmMatrix& g, size_t tiles)
        : g_(g), tiles_(tiles), shorter_(g.m / tiles), longer_(g.m % tiles) {}
    GemmRows operator[](size_t i) const {
        const ptrdiff_t m0 = (ptrdiff_t)(i * shorter_ + std::min(i, longer_));
        const bool longer = i < longer_;
        return {m0 * g_.a_row,
                m0 * g_.c_row,
                g_.a_row,
                g_.c_row,
                (int)(shorter_ + longer),
                0,
                (int)((longer ? longer_ : tiles_) - i)};
    }

private:
    const GemmMatrix& g_;
    const size_t tiles_, shorter_, longer_;
};

GemmProblem matrix_problem(const GemmMatrix& g) {
    GemmProblem problem = {};
    problem.kernels = g.kernels;
    problem.a = g.a;
    problem.a_k = g.a_k;
    problem.b = g.b;
    problem.n = g.n;
    problem.k = g.k;
    problem.bias = g.bias;
    problem.c = g.c;
    problem.c_pack = g.c_pack;
    problem.c_block = g.c_block;
    problem.activation = g.activation;
    problem.next_b = g.next_b;
    problem.whole_panels = g.whole_panels;
    return problem;
}

// Large matrices whose rows of A are a power of two apart push each other out of the first-level
// cache: a copy of the rows of some tiles, for one section of k, does not. So many columns of C
// stay in the second-level cache with it.
enum { kBlockK = 512, kBlockTiles = 3, kBlockColumns = 1024, kBlockStep = kBlockK + 16 };
// Too large for the stacks of some threads; not initialised.
struct alignas(64) CopiedRows {
    CopiedRows() {}
    float values[kBlockTiles * kGemmMaxRows * kBlockStep];
};

// The kernels must be able to write all columns but those of the last panel. Threads share the rows
// alone, so that each needs several tiles; with fewer gemm_run cuts the columns too.
bool takes_blocks(const GemmMatrix& g, int threads) {
    const GemmKernels& kernels = *g.kernels->gemm;
    if (k_unit(kernels) > 1) return false;
    if (threads > 1 && g.m < 3 * (size_t)threads * kernels.max_rows) return false;
    return g.k > 0 && g.a_k == 1 && g.a_row % 1024 == 0 && g.m >= 2 * (size_t)kernels.max_rows &&
           g.n >= 4 * panel_columns(kernels) &&
           (g.c_pack >= g.n || panel_columns(kernels) % g.c_pack == 0) &&
           make_panel(matrix_problem(g), 0).direct;
}

// A's rows from m0 to m1, their part for one section of k.
void copy_rows(const GemmMatrix& g, size_t k0, size_t k, size_t m0, size_t m1, float* to) {
    for (size_t m = m0; m < m1; m++, to += kBlockStep)
        std::copy_n(g.a + (ptrdiff_t)m * g.a_row + k0, k, to);
}

// Tiles [first, last) of `tiles` by panels [0, panels).
void run_blocks(const GemmMatrix& g, size_t tiles, size_t first, size_t last, size_t panels) {
    const GemmKernels& kernels = *g.kernels->gemm;
    const RowTiles row_tiles(g, tiles);
    Scratch<CopiedRows> memory;
    memory->resize(1);
    float* const copied = memory[0].values;
    const size_t group = std::max<size_t>(1, kBlockColumns / panel_columns(kernels));
    const size_t sections = (g.k + kBlockK - 1) / kBlockK;
    // The first section, those between, and the last one differ in what they do besides.
    GemmBlock block = {0, 0};
    GemmSection kinds[3];
    GemmProblem part = matrix_problem(g);
    part.a = copied;
    part.sections = kinds, part.num_sections = std::min<size_t>(3, sections);
    const auto run_tiles = [&](size_t r, size_t section, size_t p0) {
        const size_t end = std::min(r + kBlockTiles, last);
        const size_t kind = section == 0 ? 0 : section + 1 == sections ? part.num_sections - 1 : 1;
        block.k = partition_begin(g.k, sections, section);
        kinds[kind] = {&block, 1, partition_length(g.k, sections, section), 0};
        const size_t m0 = partition_begin(g.m, tiles, r);
        copy_rows(g, block.k, kinds[kind].block_k, m0, partition_begin(g.m, tiles, end), copied);
        for (size_t p = p0; p < std::min(p0 + group, panels); p++) {
            const Panel panel = make_panel(part, p);
            Fetch fetch = {nullptr, kinds[kind].block_k, end - r};
            if (p + 1 < panels)
                fetch.rows =
                    panel.b + gemm_b_size(kernels, (g.k + block.k) * panel_columns(kernels));
            for (size_t i = r; i < end; i++) {
                GemmRows rows = row_tiles[i];
                rows.a = (ptrdiff_t)((partition_begin(g.m, tiles, i) - m0) * kBlockStep);
                rows.a_row = kBlockStep;
                run_direct(part, &rows, 1, panel, kind, fetch.part(part, i - r));
            }
        }
    };
    for (size_t p0 = 0; p0 < panels; p0 += group)
        for (size_t r = first; r < last; r += kBlockTiles)
            for (size_t section = 0; section < sections; section++) run_tiles(r, section, p0);
}

// As gemm_matrix; the sums are the same, and in the same order.
void multiply_blocks(const GemmMatrix& g, int threads) {
    const GemmKernels& kernels = *g.kernels->gemm;
    const size_t columns = panel_columns(kernels), left = g.n % columns;
    const bool ragged = left != 0 && gemm_panel_width(kernels, left) != left;
    const size_t panels = panel_count(kernels, g.n) - ragged;
    const size_t tiles = (g.m + kernels.max_rows - 1) / kernels.max_rows;
    const int partitions = (int)std::min<size_t>(std::max(threads, 1), tiles);
    run_tasks(partitions, threads, [&](int64_t t, int) {
        const size_t first = partition_begin(tiles, partitions, t);
        run_blocks(g, tiles, first, first + partition_length(tiles, partitions, t), panels);
    });
    if (!ragged) return;
    GemmMatrix rest = g;
    const size_t n0 = panels * columns;
    rest.n = g.n - n0;
    rest.b += gemm_b_size(kernels, n0 * g.k);
    rest.bias += n0;
    rest.c += column_offset(matrix_problem(g), n0, g.c_block);
    gemm_matrix(rest, threads);
}

// All rows of A, some at a time: lists of fixed size, so that nothing is allocated.
void run_rows(const GemmMatrix& g, GemmProblem* problem, int threads) {
    enum { kMaxRows = 128 };
    GemmRows rows[kMaxRows];
    const size_t partitions = (g.m + g.kernels->gemm->max_rows - 1) / g.kernels->gemm->max_rows;
    if (partitions == 0) return;
    const RowTiles tiles(g, partitions);
    problem->rows = rows;
    problem->chunk = gemm_chunk(*g.kernels->gemm, g.k, problem->num_sections > 1 ? g.n : 0);
    for (size_t first = 0; first < partitions; first += kMaxRows) {
        problem->num_rows = std::min<size_t>(kMaxRows, partitions - first);
        for (size_t i = 0; i < problem->num_rows; i++) rows[i] = tiles[first + i];
        gemm_run(*problem, threads);
    }
}

void multiply_channel_blocks(const GemmMatrix& g, int threads) {
    const size_t lanes = g.kernels->gemm->lanes, count = g.k / lanes;
    enum { kMaxSections = kGemmMaxBlocks * 16 / kGemmSectionK };
    const size_t wanted = (g.k + kGemmSectionK - 1) / kGemmSectionK;
    const size_t num_sections = std::max<size_t>(1, std::min<size_t>(kMaxSections, wanted));
    GemmBlock blocks[kGemmMaxBlocks];
    GemmSection sections[kMaxSections];
    for (size_t i = 0; i < count; i++) blocks[i] = {(ptrdiff_t)i * g.a_block, i * lanes};
    for (size_t s = 0; s < num_sections; s++)
        sections[s] = {blocks + partition_begin(count, num_sections, s),
                       partition_length(count, num_sections, s), lanes, g.a_block};
    GemmProblem problem = matrix_problem(g);
    problem.sections = sections;
    problem.num_sections = num_sections;
    run_rows(g, &problem, threads);
}

}  // namespace

void gemm_matrix(const GemmMatrix& g, int threads) {
    if (g.a_block) return multiply_channel_blocks(g, threads);
    if (g.m == 0 || g.n == 0) return;
    if (g.m == 1 && g.kernels->gemm->row_times_panels &&
        (g.c_pack >= g.n || g.c_block == (ptrdiff_t)g.c_pack))
        return row_times_matrix(g, threads);
    if (takes_blocks(g, threads)) return multiply_blocks(g, threads);
    enum { kMaxSections = 64 };
    const size_t wanted = (g.k + kGemmSectionK - 1) / kGemmSectionK;
    const size_t num_sections = std::max<size_t>(1, std::min<size_t>(kMaxSections, wanted));
    GemmBlock blocks[kMaxSections];
    GemmSection sections[kMaxSections];
    const size_t unit = k_unit(*g.kernels->gemm), units = g.k / unit;
    for (size_t s = 0; s < num_sections; s++) {
        const size_t k0 = partition_begin(units, num_sections, s) * unit;
        const size_t length = partition_length(units, num_sections, s) * unit;
        blocks[s] = {(ptrdiff_t)k0 * g.a_k, k0};
        sections[s] = {&blocks[s], g.k ? 1u : 0u, length, 0};
    }
    GemmProblem problem = matrix_problem(g);
    problem.sections = sections;
    problem.num_sections = num_sections;
    run_rows(g, &problem, threads);
}

}  // namespace quoll
