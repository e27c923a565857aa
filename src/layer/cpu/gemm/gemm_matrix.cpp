// Products of plain matrices.
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "layer/common/scratch.h"
#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/gemm/gemm_tiles.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// One row of A by the last panel, from column n0 on, through a buffer.
void row_times_narrow_panel(const GemmMatrix& g, size_t n0, size_t width) {
    const GemmKernels& kernels = *g.kernels->gemm;
    alignas(64) float buffer[64];
    const GemmBlock block = {0, 0};
    GemmTile tile = {};
    tile.a = g.a;
    tile.a_k = g.a_k;
    tile.blocks = &block;
    tile.num_blocks = 1;
    tile.block_k = g.k;
    tile.b = g.b + n0 * g.k;
    tile.init = g.bias + n0;
    tile.init_vector = kernels.lanes;
    tile.c = buffer;
    tile.c_vector = kernels.lanes;
    tile.low = g.activation.low;
    tile.high = g.activation.high;
    kernels.tile[width / kernels.step - 1][0](tile);
    memcpy(g.c + n0, buffer, (g.n - n0) * sizeof(float));
}

// One row of A: full panels by the kernel made for it.
void row_times_matrix(const GemmMatrix& g, int threads) {
    const GemmKernels& kernels = *g.kernels->gemm;
    const size_t columns = panel_columns(kernels);
    size_t panels = panel_count(kernels, g.n);
    const size_t last = panel_width(kernels, g.n, panels - 1);
    const bool narrow = last != columns;
    if (narrow) row_times_narrow_panel(g, --panels * columns, last);
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
// stay in the second-level cache with it. Where tiles take blocks of neighbouring rows with fewer
// loads than rows that lie apart, the copy is of such blocks, and worth its while for any A. All of
// B is read again for each copy.
#if defined(__x86_64__) || defined(__i386__)
const size_t kBlockK = 1024, kCopiedRows = 70;  // 5 tiles of AVX-512, 11 of AVX2
#else
const size_t kBlockK = 512, kCopiedRows = 48;
#endif
const size_t kBlockColumns = 1024, kBlockStep = kBlockK + 16, kBlockLanes = 4;
// Too large for the stacks of some threads; not initialised.
struct alignas(64) CopiedRows {
    CopiedRows() {}
    float values[kCopiedRows * kBlockStep];
    GemmBlock blocks[kBlockK / kBlockLanes];
};

#if defined(__aarch64__)
constexpr bool kTilesLikeBlocks = !kFewKernels;
#else
constexpr bool kTilesLikeBlocks = false;  // those of 32-bit ARM read blocks no better
#endif

// Vectors longer than 128 bits read rows anywhere as well. Copying is worth it from some panels on.
bool copies_blocks(const GemmMatrix& g) {
    const GemmKernels& kernels = *g.kernels->gemm;
    const bool wide = kernels.step > kernels.lanes && kernels.halves == 2;
    return kTilesLikeBlocks && kernels.blocks && !wide && g.k % kBlockLanes == 0 &&
           g.n >= 8 * panel_columns(kernels);
}

// The kernels must be able to write all columns but those of the last panel. Threads share the rows
// alone, so that each needs several tiles; with fewer gemm_run cuts the columns too.
bool takes_blocks(const GemmMatrix& g, int threads) {
    const GemmKernels& kernels = *g.kernels->gemm;
    if (k_unit(kernels) > 1) return false;
    if (threads > 1 && g.m < 3 * (size_t)threads * kernels.max_rows) return false;
    return g.k > 0 && g.a_k == 1 && g.m >= 2 * (size_t)kernels.max_rows &&
           g.n >= 4 * panel_columns(kernels) && (g.a_row % 1024 == 0 || copies_blocks(g)) &&
           (g.c_pack >= g.n || panel_columns(kernels) % g.c_pack == 0) &&
           gemm_make_panel(matrix_problem(g), 0).direct;
}

// `count` values of a row of A, every four of them `step` floats further on.
void copy_row(const float* from, size_t count, size_t step, float* to) {
    if (step == kBlockLanes) {
        std::copy_n(from, count, to);
        return;
    }
    for (size_t i = 0; i < count; i += kBlockLanes, to += step)
        memcpy(to, from + i, kBlockLanes * sizeof(float));
}

// Tiles [first, last) of `tiles` by panels [0, panels).
void run_blocks(const GemmMatrix& g, size_t tiles, size_t first, size_t last, size_t panels) {
    const GemmKernels& kernels = *g.kernels->gemm;
    const RowTiles row_tiles(g, tiles);
    Scratch<CopiedRows> memory;
    memory->resize(1);
    float* const copied = memory[0].values;
    GemmBlock* const blocks = memory[0].blocks;
    const bool in_blocks = copies_blocks(g);
    const size_t tile_rows = kernels.max_rows;
    const size_t unit = in_blocks ? kBlockLanes : 1,
                 step = in_blocks ? unit * tile_rows : kBlockLanes;
    const size_t most = kCopiedRows / tile_rows, copies = (last - first + most - 1) / most;
    const size_t copied_tiles = (last - first + copies - 1) / copies;
    const size_t group = std::max<size_t>(1, kBlockColumns / panel_columns(kernels));
    const size_t sections = (g.k + kBlockK - 1) / kBlockK;
    // The first section, those between, and the last one differ in what they do besides.
    GemmSection kinds[3];
    GemmProblem part = matrix_problem(g);
    part.a = copied;
    part.sections = kinds, part.num_sections = std::min<size_t>(3, sections);
    const auto run_tiles = [&](size_t r, size_t section, size_t p0) {
        const size_t count = std::min(copied_tiles, last - r);
        const size_t kind = section == 0 ? 0 : section + 1 == sections ? part.num_sections - 1 : 1;
        const size_t k0 = partition_begin(g.k / unit, sections, section) * unit;
        const size_t k = partition_length(g.k / unit, sections, section) * unit;
        const size_t num_blocks = in_blocks ? k / unit : 1;
        for (size_t i = 0; i < num_blocks; i++) blocks[i] = {(ptrdiff_t)(i * step), k0 + i * unit};
        kinds[kind] = {blocks, num_blocks, k / num_blocks, in_blocks ? (ptrdiff_t)step : 0};
        GemmRows rows[kCopiedRows];
        for (size_t i = 0; i < count; i++) {
            rows[i] = row_tiles[r + i];
            const float* from = g.a + rows[i].a + (ptrdiff_t)k0;
            rows[i].a = (ptrdiff_t)(i * tile_rows * kBlockStep);
            rows[i].a_row = in_blocks ? kBlockLanes : kBlockStep;
            for (int m = 0; m < rows[i].rows; m++)
                copy_row(from + m * g.a_row, k, step, copied + rows[i].a + m * rows[i].a_row);
        }
        for (size_t p = p0; p < std::min(p0 + group, panels); p++) {
            const GemmPanel panel = gemm_make_panel(part, p);
            PanelFetch fetch = {nullptr, k, count};
            // Tiles of blocks fetch nothing.
            if (p + 1 < panels && !in_blocks)
                fetch.rows = panel.b + gemm_b_size(kernels, (g.k + k0) * panel_columns(kernels));
            for (size_t i = 0, alike; i < count; i += alike) {
                alike = in_blocks ? std::min<size_t>(rows[i].alike, count - i) : 1;
                gemm_run_direct(part, rows + i, alike, panel, kind, fetch.part(part, i));
            }
        }
    };
    for (size_t p0 = 0; p0 < panels; p0 += group)
        for (size_t r = first; r < last; r += copied_tiles)
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
    rest.c += column_offset(g, n0, g.c_block);
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
    const size_t sections = problem->num_sections;
    problem->chunk =
        gemm_chunk(*g.kernels->gemm, g.k / sections, sections > 1 ? g.n : 0, g.k * g.n);
    for (size_t first = 0; first < partitions; first += kMaxRows) {
        problem->num_rows = std::min<size_t>(kMaxRows, partitions - first);
        for (size_t i = 0; i < problem->num_rows; i++) rows[i] = tiles[first + i];
        gemm_run(*problem, threads);
    }
}

// Long vectors read a panel from the second-level cache as fast as they multiply; to start from the
// sums of another section takes them longer (AVX-512, k = 768: 5 %). Not so for blocks of channels:
// they are a plane apart, often by powers of two, and more of them than make kGemmSectionK would
// push each other out of that cache.
size_t section_count(const GemmMatrix& g) {
    const size_t most =
        g.kernels->gemm->lanes >= 8 && !g.a_block ? 2 * kGemmSectionK : kGemmSectionK;
    return (g.k + most - 1) / most;
}

void multiply_channel_blocks(const GemmMatrix& g, int threads) {
    const size_t lanes = g.kernels->gemm->lanes, count = g.k / lanes;
    enum { kMaxSections = 16 };  // of kGemmMaxBlocks blocks of 16
    const size_t wanted = section_count(g);
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
    const size_t wanted = section_count(g);
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
