// The micro-kernels of the gemm family on every ISA against sums in double.
#include <gtest/gtest.h>
#include <math.h>

#include <algorithm>
#include <random>
#include <vector>

#include "guarded.h"
#include "layer/cpu/gemm/gemm_run.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/registry/kernel_rows.h"

using namespace quoll;

namespace {

std::mt19937 g_rng(5);
float uniform() { return std::uniform_real_distribution<float>(-1, 1)(g_rng); }
void fill(Guarded<float>& values) {
    for (float& v : values) v = uniform();
}

// Rounding of a sum of `terms` products of numbers up to 1, in any order, each step rounded once or
// twice.
double sum_tolerance(size_t terms) { return 0x1p-23 * (double)(terms + 2) * sqrt((double)terms); }

struct Layout {
    size_t num_blocks, block_k;
    ptrdiff_t a_row, a_k;  // floats
    ptrdiff_t block_step;  // floats between blocks of A
    bool c_blocked;        // vectors of C far apart, as in channel-blocked blobs
    bool init_rows;        // init has a row for each row of C; otherwise one for all
    float low, high;
};

// Both ends of a strided walk: the least and the greatest offset.
size_t span(size_t rows, size_t k, const Layout& l) {
    return (rows - 1) * (size_t)l.a_row + (k - 1) * (size_t)l.a_k +
           (l.num_blocks - 1) * (size_t)l.block_step + 1;
}

// What is multiplied, and how far a sum may be off: floats, or half floats, of which each step
// rounds the sum so far.
struct Single {
    typedef float Value;
    static float from(float x) { return x; }
    static double to(float x) { return x; }
    static double tolerance(size_t terms, double) { return sum_tolerance(terms); }
};
struct Half {
    typedef uint16_t Value;
    static uint16_t from(float x) { return float32_to_float16(x); }
    static double to(float x) { return float16_to_float32(float32_to_float16(x)); }
    static double tolerance(size_t terms, double most) { return 0x1p-11 * (double)terms * most; }
};

// Pairs of half floats in the place of floats, with room for them at the ends of guarded memory.
class Halves {
public:
    Halves(size_t count, bool at_end = true) : memory_((count + 1) / 2, at_end) {}
    uint16_t& operator[](size_t i) { return ((uint16_t*)memory_.data())[i]; }
    double at(size_t i) { return float16_to_float32((*this)[i]); }
    void fill() {
        for (size_t i = 0; i < 2 * memory_.size(); i++) (*this)[i] = Half::from(uniform());
    }
    float* floats() { return memory_.data(); }
    size_t size() const { return 2 * memory_.size(); }

private:
    Guarded<float> memory_;
};

template <class Type>
void check_tile(GemmTileKernel kernel, size_t lanes, size_t vectors, size_t rows, const Layout& l,
                bool at_end) {
    const size_t columns = vectors * lanes, k = l.num_blocks * l.block_k;
    Guarded<float> a(span(rows, l.block_k, l), at_end);
    Guarded<typename Type::Value> packed(k * columns, at_end);
    std::vector<float> b(k * columns);
    const ptrdiff_t c_vector = l.c_blocked ? (ptrdiff_t)(rows * lanes + 3) : (ptrdiff_t)lanes;
    const ptrdiff_t c_row = l.c_blocked ? (ptrdiff_t)lanes : (ptrdiff_t)columns + 1;
    const size_t c_size = (rows - 1) * c_row + (vectors - 1) * c_vector + lanes;
    Guarded<float> c(c_size, at_end), init(l.init_rows ? c_size : columns, at_end);
    fill(a);
    for (size_t i = 0; i < b.size(); i++)
        b[i] = (float)Type::to(uniform()), packed[i] = Type::from(b[i]);
    fill(init);
    for (float& v : c) v = 77.f;
    // Blocks of B in another order than those of A.
    std::vector<GemmBlock> blocks;
    for (size_t i = 0; i < l.num_blocks; i++)
        blocks.push_back({(ptrdiff_t)i * l.block_step, (l.num_blocks - 1 - i) * l.block_k});
    GemmTile tile = {};
    tile.a = a.data();
    tile.a_row = l.a_row;
    tile.a_k = l.a_k;
    tile.blocks = blocks.data();
    tile.num_blocks = l.num_blocks;
    tile.block_k = l.block_k;
    tile.b = (const float*)packed.data();
    tile.init = init.data();
    tile.init_row = l.init_rows ? c_row : 0;
    tile.init_vector = l.init_rows ? c_vector : (ptrdiff_t)lanes;
    tile.c = c.data();
    tile.c_row = c_row;
    tile.c_vector = c_vector;
    tile.low = l.low;
    tile.high = l.high;
    kernel(tile);

    std::vector<bool> written(c_size, false);
    for (size_t m = 0; m < rows; m++) {
        for (size_t n = 0; n < columns; n++) {
            double sum =
                Type::to(init[m * tile.init_row + n / lanes * tile.init_vector + n % lanes]);
            double most = fabs(sum);
            for (const GemmBlock& block : blocks)
                for (size_t kk = 0; kk < l.block_k; kk++) {
                    sum += Type::to(a[block.a + m * l.a_row + kk * l.a_k]) *
                           b[(block.k + kk) * columns + n];
                    most = std::max(most, fabs(sum));
                }
            const double exact = sum < l.low ? l.low : sum > l.high ? l.high : sum;
            const size_t at = m * c_row + n / lanes * c_vector + n % lanes;
            written[at] = true;
            ASSERT_NEAR(c[at], exact, Type::tolerance(k + 1, most))
                << "row " << m << " column " << n;
        }
    }
    for (size_t i = 0; i < c_size; i++)
        ASSERT_TRUE(written[i] || c[i] == 77.f) << "wrote between results, at " << i;
}

const Layout kLayouts[] = {
    {1, 1, 1, 1, 0, false, false, -INFINITY, INFINITY},    // one product
    {1, 37, 37, 1, 0, false, false, -INFINITY, INFINITY},  // row-major
    {1, 23, 1, 19, 0, false, true, -INFINITY, INFINITY},   // transposed
    {3, 16, 16, 1, 300, true, true, 0.f, INFINITY},        // blocked convolution, relu
    {5, 3, 2, 1, 41, true, false, -.5f, .5f},              // planar convolution, clip
    {5, 4, 4, 1, 70, true, false, 0.f, INFINITY},      // neighbouring pixels of 4 channels, relu
    {3, 4, 8, 1, 140, true, true, -1.f, 6.f},          // and every other one
    {3, 5, 1, 21, 120, false, false, -INFINITY, 1.f},  // planar, channel by channel
    {6, 7, 2, 1, 61, true, false, 0.f, INFINITY},      // windows of stride 2 of planar images
    {9, 3, 2, 1, 23, true, false, 0.f, 6.f},
    {2, 3, 2, 1, 17, false, true, -INFINITY, INFINITY},
};

// The portable kernels of every level, and those that have tiles by hand.
std::vector<const VectorKernels*> all_sets() {
    std::vector<const VectorKernels*> sets;
    for (Isa isa : available_isas()) {
        sets.push_back(&vector_kernels(isa));
        if (kernel_set(isa).gemm != sets.back()->gemm) sets.push_back(&kernel_set(isa));
    }
    if (host_kernel_set().gemm != sets.back()->gemm) sets.push_back(&host_kernel_set());
    return sets;
}

// The tile of a full panel.
GemmTileKernel full_tile(const GemmKernels& kernels, size_t rows) {
    return kernels.tile[kernels.lanes * kernels.vectors / kernels.step - 1][rows - 1];
}

TEST(Gemm, tiles) {
    for (const VectorKernels* set : all_sets()) {
        const GemmKernels& kernels = *set->gemm;
        const Isa isa = set->isa;
        ASSERT_LE(kernels.max_rows, (int)kGemmMaxRows);
        const int widths = kernels.lanes * kernels.vectors / kernels.step;
        ASSERT_LE(widths, (int)kGemmMaxWidths);
        for (int width = 1; width <= kGemmMaxWidths; width++) {
            for (int rows = 1; rows <= kGemmMaxRows; rows++) {
                const int vectors = width * kernels.step / kernels.lanes;
                const GemmTileKernel kernel = kernels.tile[width - 1][rows - 1];
                ASSERT_EQ(kernel != nullptr, rows <= kernels.max_rows && width <= widths);
                if (!kernel) continue;
                for (const Layout& layout : kLayouts)
                    for (bool at_end : {true, false}) {
                        SCOPED_TRACE(std::string(isa_name(isa)) + " vectors " +
                                     std::to_string(vectors) + " rows " + std::to_string(rows) +
                                     " layout " + std::to_string(&layout - kLayouts));
                        check_tile<Single>(kernel, kernels.lanes, vectors, rows, layout, at_end);
                        if (HasFatalFailure()) return;
                    }
            }
        }
    }
}

TEST(Gemm, tiles_of_half_floats) {
    for (const KernelRow& row : kernel_rows()) {
        if (row.slot != KernelSlot::half_gemm_tile || !host_cpu_features().has_all(row.features))
            continue;
        const size_t lanes = vector_kernels(best_isa(row.features)).gemm->lanes;
        for (const Layout& layout : kLayouts)
            for (bool at_end : {true, false}) {
                SCOPED_TRACE(std::string(row.name) + " layout " +
                             std::to_string(&layout - kLayouts));
                check_tile<Half>(row.tile, lanes, row.columns / lanes, row.rows, layout, at_end);
                if (HasFatalFailure()) return;
            }
    }
}

bool is_of_pairs(const KernelRow& row) {
    return row.slot == KernelSlot::f16_gemm_tile || row.slot == KernelSlot::sve_f16_gemm_tile;
}

bool is_f16f32(const KernelRow& row) { return row.slot == KernelSlot::f16f32_gemm_tile; }

GemmTileKernel short_tile_of_pairs(size_t rows, size_t columns) {
    for (const KernelRow& row : kernel_rows())
        if (row.slot == KernelSlot::f16_gemm_tile && row.core == CpuCore::any &&
            (size_t)row.rows == rows && (size_t)row.columns == columns)
            return row.tile;
    return nullptr;
}

struct PairLayout {
    size_t num_blocks, block_k;
    ptrdiff_t a_row, block_step;  // pairs
    bool c_blocked, init_rows;
    float low, high;
};

// All counts but `lanes` and `vectors` of columns are of half floats here; distances in a tile are
// of pairs.
void check_pairs(GemmTileKernel kernel, size_t rows, size_t columns, const PairLayout& l,
                 bool at_end) {
    const size_t vectors = columns / 8, k = l.num_blocks * l.block_k * 2;
    const ptrdiff_t c_vector = l.c_blocked ? (ptrdiff_t)(rows * 4 + 3) : 4;
    const ptrdiff_t c_row = l.c_blocked ? 4 : (ptrdiff_t)columns / 2 + 1;
    const size_t c_pairs = (rows - 1) * c_row + (vectors - 1) * c_vector + 4;
    const size_t a_pairs = (rows - 1) * l.a_row + (l.num_blocks - 1) * l.block_step + l.block_k;
    Halves a(2 * a_pairs, at_end), b(k * columns, at_end), c(2 * c_pairs, at_end),
        init(l.init_rows ? 2 * c_pairs : columns, at_end);
    a.fill(), b.fill(), init.fill();
    const uint16_t kept = Half::from(77.f);
    for (size_t i = 0; i < c.size(); i++) c[i] = kept;
    std::vector<GemmBlock> blocks;
    for (size_t i = 0; i < l.num_blocks; i++)
        blocks.push_back({(ptrdiff_t)i * l.block_step, (l.num_blocks - 1 - i) * l.block_k});
    GemmTile tile = {};
    tile.a = a.floats(), tile.a_row = l.a_row, tile.a_k = 1;
    tile.blocks = blocks.data(), tile.num_blocks = l.num_blocks, tile.block_k = l.block_k;
    tile.b = b.floats();
    tile.init = init.floats(), tile.init_row = l.init_rows ? c_row : 0;
    tile.init_vector = l.init_rows ? c_vector : 4;
    tile.c = c.floats(), tile.c_row = c_row, tile.c_vector = c_vector;
    tile.low = l.low, tile.high = l.high;
    kernel(tile);
    std::vector<bool> written(c.size(), false);
    for (size_t m = 0; m < rows; m++)
        for (size_t n = 0; n < columns; n++) {
            double sum = init.at(2 * (m * tile.init_row + n / 8 * tile.init_vector) + n % 8);
            double most = fabs(sum);
            for (const GemmBlock& block : blocks)
                for (size_t kk = 0; kk < 2 * l.block_k; kk++) {
                    sum += a.at(2 * (block.a + m * l.a_row) + kk) *
                           b.at((2 * block.k + kk) * columns + n);
                    most = std::max(most, fabs(sum));
                }
            const double exact = sum < l.low ? l.low : sum > l.high ? l.high : sum;
            const size_t at = 2 * (m * c_row + n / 8 * c_vector) + n % 8;
            written[at] = true;
            ASSERT_NEAR(c.at(at), exact, Half::tolerance(k + 1, most))
                << "row " << m << " column " << n;
        }
    for (size_t i = 0; i < c.size(); i++)
        ASSERT_TRUE(written[i] || c[i] == kept) << "wrote between results, at " << i;
}

const PairLayout kPairLayouts[] = {
    {1, 4, 4, 0, false, false, -INFINITY, INFINITY},  // one block
    {5, 4, 4, 70, true, false, 0.f, INFINITY},        // neighbouring pixels, relu
    {6, 4, 4, 61, false, true, -.5f, .5f},
    {3, 4, 8, 140, true, true, -1.f, 6.f},              // and every other one
    {2, 4, 0, 16, true, false, 0.f, 6.f},               // one row for all
    {1, 24, 24, 0, false, false, -INFINITY, INFINITY},  // row-major
    {3, 12, 13, 100, true, true, -INFINITY, 1.f},
};

TEST(Gemm, tiles_of_pairs_of_half_floats) {
    for (const KernelRow& row : kernel_rows()) {
        if (!is_of_pairs(row) || !host_cpu_features().has_all(row.features)) continue;
        for (const PairLayout& layout : kPairLayouts)
            for (bool at_end : {true, false}) {
                SCOPED_TRACE(std::string(row.name) + " layout " +
                             std::to_string(&layout - kPairLayouts));
                check_pairs(row.tile, row.rows, row.columns, layout, at_end);
                if (HasFatalFailure()) return;
            }
    }
}

// Sums of half floats have one order: those of long vectors, and of tiles for some cores, are the
// same bits as those of short ones for all cores.
TEST(Gemm, long_vectors_of_half_floats_are_short_ones) {
    const size_t most = 32, k = 8;  // columns of a short tile, pairs
    for (const KernelRow& row : kernel_rows()) {
        if (!is_of_pairs(row) || !host_cpu_features().has_all(row.features)) continue;
        SCOPED_TRACE(row.name);
        const size_t columns = row.columns, rows = row.rows;
        Halves a(2 * rows * k), b(2 * k * columns), init(columns), got(rows * columns),
            want(rows * columns);
        a.fill(), b.fill(), init.fill();
        const GemmBlock block = {0, 0};
        GemmTile tile = {};
        tile.a = a.floats(), tile.a_row = k, tile.a_k = 1;
        tile.blocks = &block, tile.num_blocks = 1, tile.block_k = k;
        tile.b = b.floats(), tile.init = init.floats(), tile.c = got.floats();
        tile.init_vector = tile.c_vector = 4, tile.c_row = columns / 2;
        tile.low = -.7f, tile.high = 1.f;
        row.tile(tile);
        for (size_t n0 = 0, width; n0 < columns; n0 += width) {
            width = std::min(most, columns - n0);
            Halves part(2 * k * width);
            for (size_t i = 0; i < 2 * k; i++)
                for (size_t n = 0; n < width; n++) part[i * width + n] = b[i * columns + n0 + n];
            tile.b = part.floats();
            tile.init = init.floats() + n0 / 2, tile.c = want.floats() + n0 / 2;
            const GemmTileKernel kernel = short_tile_of_pairs(rows, width);
            ASSERT_TRUE(kernel);
            kernel(tile);
        }
        for (size_t i = 0; i < got.size(); i++) ASSERT_EQ(got[i], want[i]) << i;
    }
}

// Tiles of half floats whose sums are fp32 have the bits of portable tiles of the same values as
// floats, for several tiles in a call.
void check_f16f32(const KernelRow& row, bool columns, bool init_rows, size_t num_blocks,
                  bool at_end) {
    const GemmKernels& portable = *vector_kernels(best_isa(row.features)).gemm;
    const size_t rows = row.rows, width = row.columns, tiles = 3, lanes = portable.lanes;
    const size_t a_row = 2, a_tile = rows * a_row, a_block = tiles * a_tile + 3;
    const size_t c_step = columns ? tiles * lanes * rows + 1 : width + 1;
    Halves a(2 * ((num_blocks - 1) * a_block + (tiles * rows - 1) * a_row + 2), at_end),
        b(num_blocks * 4 * width, at_end);
    Guarded<float> init(init_rows ? tiles * rows * width : width, at_end),
        got(columns ? (width / lanes - 1) * c_step + tiles * lanes * rows
                    : (tiles * rows - 1) * c_step + width,
            at_end),
        want(got.size());
    a.fill(), b.fill(), fill(init);
    std::vector<float> wide_a(a.size()), wide_b(b.size());
    for (size_t i = 0; i < a.size(); i++) wide_a[i] = (float)a.at(i);
    for (size_t i = 0; i < b.size(); i++) wide_b[i] = (float)b.at(i);
    for (size_t i = 0; i < got.size(); i++) got[i] = want[i] = 55.f;
    std::vector<GemmBlock> blocks, wide_blocks;
    for (size_t i = 0; i < num_blocks; i++) {
        blocks.push_back({(ptrdiff_t)(i * a_block), 2 * i});
        wide_blocks.push_back({(ptrdiff_t)(2 * i * a_block), 4 * i});
    }
    GemmTile tile = {};
    tile.a = a.floats(), tile.a_row = a_row, tile.a_k = 1, tile.b = b.floats();
    tile.blocks = blocks.data(), tile.num_blocks = num_blocks, tile.block_k = 2;
    tile.block_step = num_blocks > 1 ? a_block : 0;
    tile.init = init.data(), tile.init_row = init_rows ? width : 0, tile.init_vector = lanes;
    tile.c = got.data(), tile.c_row = columns ? lanes : c_step;
    tile.c_vector = columns ? c_step : lanes;
    tile.more = tiles - 1, tile.a_tile = a_tile, tile.init_tile = init_rows ? rows * width : 0;
    tile.c_tile = columns ? lanes * rows : rows * c_step;
    tile.low = num_blocks % 2 ? -.5f : -INFINITY, tile.high = num_blocks % 3 ? INFINITY : .6f;
    row.tile(tile);
    tile.a = wide_a.data(), tile.a_row = 2 * a_row, tile.a_tile = 2 * a_tile;
    tile.blocks = wide_blocks.data(), tile.block_k = 4, tile.block_step = 0;
    // As many columns at a time as a portable tile has.
    const size_t most = std::min<size_t>(width, lanes * portable.vectors);
    std::vector<float> part(wide_b.size() / width * most);
    for (size_t n0 = 0, count; n0 < width; n0 += count) {
        count = std::min(most, width - n0);
        for (size_t i = 0; i < wide_b.size() / width; i++)
            std::copy_n(wide_b.data() + i * width + n0, count, part.data() + i * count);
        tile.b = part.data(), tile.init = init.data() + n0;
        tile.c = want.data() + (ptrdiff_t)(n0 / lanes) * tile.c_vector;
        portable.tile[count / portable.step - 1][rows - 1](tile);
    }
    for (size_t i = 0; i < got.size(); i++)
        ASSERT_EQ(got[i], want[i]) << "at " << i << " of " << num_blocks << " blocks";
}

TEST(Gemm, tiles_of_half_floats_with_sums_of_floats) {
    for (const KernelRow& row : kernel_rows()) {
        if (!is_f16f32(row) || !host_cpu_features().has_all(row.features)) continue;
        for (size_t blocks = 1; blocks <= 7; blocks++)
            for (int kind = 0; kind < 8; kind++) {
                SCOPED_TRACE(std::string(row.name) + " kind " + std::to_string(kind));
                check_f16f32(row, kind & 1, kind & 2, blocks, kind & 4);
                if (HasFatalFailure()) return;
            }
    }
}

// The least and the largest half floats, infinity and NaN are what they are as floats.
TEST(Gemm, odd_half_floats_with_sums_of_floats) {
    const float odd[] = {0x1p-24f, 65504.f, INFINITY, NAN};
    for (const KernelRow& row : kernel_rows()) {
        if (!is_f16f32(row) || !host_cpu_features().has_all(row.features)) continue;
        for (float x : odd)
            for (float y : odd) {
                Halves a(4 * row.rows), b(4 * row.columns);
                for (size_t i = 0; i < a.size(); i++) a[i] = float32_to_float16(i % 4 ? 0.f : x);
                for (size_t i = 0; i < b.size(); i++)
                    b[i] = float32_to_float16(i < (size_t)row.columns ? y : 0.f);
                const std::vector<float> init(row.columns, 0x1p-30f);
                std::vector<float> c(row.rows * row.columns);
                const GemmBlock block = {0, 0};
                GemmTile tile = {};
                tile.a = a.floats(), tile.a_row = 2, tile.a_k = 1, tile.b = b.floats();
                tile.blocks = &block, tile.num_blocks = 1, tile.block_k = 2;
                tile.init = init.data(), tile.init_vector = tile.c_vector = 4;
                tile.c = c.data(), tile.c_row = row.columns;
                tile.low = -INFINITY, tile.high = INFINITY;
                row.tile(tile);
                const float want = fmaf(x, y, init[0]);
                for (float got : c)
                    ASSERT_TRUE(got == want || (isnan(got) && isnan(want)))
                        << row.name << " " << x << " * " << y << ": " << got;
            }
    }
}

// Tiles by hand give the same bits as the portable ones, for every number of steps and any A.
TEST(Gemm, tiles_by_hand_are_those_of_templates) {
    for (const KernelRow& row : kernel_rows()) {
        if ((row.slot != KernelSlot::gemm_tile && row.slot != KernelSlot::sve_gemm_tile) ||
            !host_cpu_features().has_all(row.features))
            continue;
        const Isa isa = best_isa(row.features);
        const GemmKernels& portable = *vector_kernels(isa).gemm;
        const size_t columns = row.columns, rows = row.rows;
        for (size_t k = 1; k <= 13; k++)
            for (bool row_major : {true, false}) {
                SCOPED_TRACE(std::string(row.name) + " k " + std::to_string(k));
                Guarded<float> a(3 * rows * k), b(3 * k * columns), init(columns),
                    got(rows * columns), want(rows * columns);
                fill(a), fill(b), fill(init);
                const ptrdiff_t size = (ptrdiff_t)(rows * k);
                const GemmBlock blocks[] = {{size, k}, {2 * size, 0}, {0, 2 * k}};
                GemmTile tile = {};
                tile.a = a.data(), tile.a_row = row_major ? k : 1, tile.a_k = row_major ? 1 : rows;
                tile.blocks = blocks, tile.num_blocks = 3, tile.block_k = k;
                tile.b = b.data(), tile.init = init.data();
                tile.init_vector = tile.c_vector = portable.lanes, tile.c_row = columns;
                tile.low = -.7f, tile.high = 1.f;
                tile.fetch = {k % 2 ? (const char*)b.data() : nullptr, 32};
                tile.c = got.data();
                row.tile(tile);
                // As many columns at a time as a portable tile has.
                const size_t most = std::min<size_t>(columns, portable.lanes * portable.vectors);
                std::vector<float> part(3 * k * most);
                for (size_t n0 = 0, width; n0 < columns; n0 += width) {
                    width = std::min(most, columns - n0);
                    for (size_t i = 0; i < 3 * k; i++)
                        std::copy_n(b.data() + i * columns + n0, width, part.data() + i * width);
                    tile.b = part.data(), tile.fetch = {};
                    tile.init = init.data() + n0, tile.c = want.data() + n0;
                    portable.tile[width / portable.step - 1][rows - 1](tile);
                }
                for (size_t i = 0; i < rows * columns; i++) ASSERT_EQ(got[i], want[i]) << i;
            }
    }
}

#if defined(__aarch64__)
// What a call must leave as it was (AAPCS64, 6.1): the lower halves of v8 to v15, x19 to x28.
TEST(Gemm, tiles_by_hand_keep_registers) {
    for (const KernelRow& row : kernel_rows()) {
        if (!row.tile || !host_cpu_features().has_all(row.features)) continue;
        SCOPED_TRACE(row.name);
        const size_t rows = row.rows, columns = row.columns, k = 9;
        std::vector<float> a(rows * k), b(k * columns), init(columns), c(rows * columns);
        const GemmBlock block = {0, 0};
        GemmTile tile = {};
        tile.a = a.data(), tile.a_row = k, tile.a_k = 1, tile.b = b.data();
        tile.blocks = &block, tile.num_blocks = 1, tile.block_k = k;
        tile.init = init.data(), tile.init_vector = tile.c_vector = 4;
        tile.c = c.data(), tile.c_row = columns, tile.low = -1, tile.high = 1;
        uint64_t after[18];
        register const GemmTile* argument __asm__("x0") = &tile;
        register GemmTileKernel kernel __asm__("x1") = row.tile;
        register uint64_t* out __asm__("x28") = after;
        __asm__ volatile(
            "mov x19, #19\n mov x20, #20\n mov x21, #21\n mov x22, #22\n mov x23, #23\n"
            "mov x24, #24\n mov x25, #25\n mov x26, #26\n mov x27, #27\n"
            "fmov d8, x19\n fmov d9, x20\n fmov d10, x21\n fmov d11, x22\n"
            "fmov d12, x23\n fmov d13, x24\n fmov d14, x25\n fmov d15, x26\n"
            "blr x1\n"
            "stp x19, x20, [x28]\n stp x21, x22, [x28, #16]\n stp x23, x24, [x28, #32]\n"
            "stp x25, x26, [x28, #48]\n str x27, [x28, #64]\n"
            "stp d8, d9, [x28, #72]\n stp d10, d11, [x28, #88]\n"
            "stp d12, d13, [x28, #104]\n stp d14, d15, [x28, #120]\n"
            : "+r"(argument), "+r"(kernel), "+r"(out)
            :
            : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
              "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27",
              "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
              "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
              "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
        for (uint64_t i = 0; i < 9; i++) EXPECT_EQ(after[i], 19 + i) << "x" << 19 + i;
        for (uint64_t i = 0; i < 8; i++) EXPECT_EQ(after[9 + i], 19 + i) << "d" << 8 + i;
    }
}
#elif defined(__arm__)
namespace {

// The same for AAPCS32: d8 to d15, r4 to r11, of which the compiler wants one or two for itself.
void check_kept_registers(const void* task, KernelPart part) {
    uint32_t after[21] = {};
    register const void* argument __asm__("r0") = task;
    register KernelPart kernel __asm__("r1") = part;
    register uint32_t* out __asm__("r10") = after;
    __asm__ volatile(
        "mov r4, #4\n mov r5, #5\n mov r6, #6\n mov r8, #8\n mov r9, #9\n"
        "vmov d8, r4, r5\n vmov d9, r5, r6\n vmov d10, r6, r8\n vmov d11, r8, r9\n"
        "vmov d12, r4, r5\n vmov d13, r5, r6\n vmov d14, r6, r8\n vmov d15, r8, r9\n"
        "blx r1\n"
        "stm r10, {r4, r5, r6, r8, r9}\n add r1, r10, #20\n vstm r1, {d8-d15}\n"
        : "+r"(argument), "+r"(kernel), "+r"(out)
        :
        : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r12", "lr", "q0", "q1", "q2", "q3", "q4", "q5",
          "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "cc", "memory");
    const uint32_t kept[] = {4, 5, 6, 8, 9, 4, 5, 5, 6, 6, 8, 8, 9, 4, 5, 5, 6, 6, 8, 8, 9};
    EXPECT_TRUE(out == after) << "r10";
    for (size_t i = 0; i < 21; i++) EXPECT_EQ(after[i], kept[i]) << "word " << i;
}

}  // namespace

TEST(Gemm, tiles_by_hand_keep_registers) {
    for (const KernelRow& row : kernel_rows()) {
        if (!row.tile || !host_cpu_features().has_all(row.features)) continue;
        SCOPED_TRACE(row.name);
        const size_t rows = row.rows, columns = row.columns, k = 9;
        std::vector<float> a(rows * k), b(k * columns), init(columns), c(rows * columns);
        const GemmBlock block = {0, 0};
        GemmTile tile = {};
        tile.a = a.data(), tile.a_row = k, tile.a_k = 1, tile.b = b.data();
        tile.blocks = &block, tile.num_blocks = 1, tile.block_k = k;
        tile.init = init.data(), tile.init_vector = tile.c_vector = 4;
        tile.c = c.data(), tile.c_row = columns, tile.low = -1, tile.high = 1;
        check_kept_registers(&tile, (KernelPart)row.tile);
    }
}

TEST(Gemm, int8_kernels_by_hand_keep_registers) {
    for (const KernelRow& row : kernel_rows()) {
        if (!row.part || !host_cpu_features().has_all(row.features)) continue;
        SCOPED_TRACE(row.name);
        if (row.slot == KernelSlot::int8_tile || row.slot == KernelSlot::int8_byte_tile) {
            const size_t rows = row.rows, columns = row.columns, k = 7;
            std::vector<int32_t> a(rows * k), b(k * columns), init(columns), sums(rows * columns);
            const GemmBlock block = {0, 0};
            Int8Tile tile = {};
            tile.a = a.data(), tile.a_row = k, tile.b = b.data(), tile.init = init.data();
            tile.blocks = &block, tile.num_blocks = 1, tile.block_k = k, tile.sums = sums.data();
            for (const bool small : {false, true}) {
                tile.small = small;
                check_kept_registers(&tile, row.part);
            }
        }
        if (row.slot == KernelSlot::int8_windows_3x3) {
            const int8_t in[3 * 64] = {}, weight[9 * 16] = {};
            int32_t init[4] = {}, sums[28];
            const Int8WindowRows windows = {in, 64, 0, weight, init, sums, 4, 1};
            check_kept_registers(&windows, row.part);
        }
    }
}
#endif

// init may be the result itself: a sum in two calls. The terms are added in the same order, so the
// results are the same.
TEST(Gemm, tile_accumulates_in_place) {
    for (const VectorKernels* set : all_sets()) {
        const GemmKernels& kernels = *set->gemm;
        const Isa isa = set->isa;
        const size_t columns = kernels.lanes * kernels.vectors, rows = kernels.max_rows, k = 20;
        Guarded<float> a(rows * k), b(k * columns), zero(columns), once(rows * columns),
            twice(rows * columns);
        fill(a);
        fill(b);
        const GemmBlock first = {0, 0}, second = {(ptrdiff_t)k / 2, k / 2};
        GemmTile tile = {};
        tile.a = a.data();
        tile.a_row = k;
        tile.a_k = 1;
        tile.blocks = &first;
        tile.num_blocks = 1;
        tile.block_k = k;
        tile.b = b.data();
        tile.init = zero.data();
        tile.init_vector = tile.c_vector = kernels.lanes;
        tile.c_row = columns;
        tile.low = -INFINITY;
        tile.high = INFINITY;
        tile.c = once.data();
        full_tile(kernels, rows)(tile);
        tile.c = twice.data();
        tile.block_k = k / 2;
        full_tile(kernels, rows)(tile);
        tile.blocks = &second;
        tile.init = twice.data();
        tile.init_row = columns;
        full_tile(kernels, rows)(tile);
        for (size_t i = 0; i < rows * columns; i++) ASSERT_EQ(once[i], twice[i]) << isa_name(isa);
    }
}

// A call for several tiles does what calls for each do.
TEST(Gemm, more_tiles_of_a_call) {
    for (const VectorKernels* set : all_sets()) {
        const GemmKernels& kernels = *set->gemm;
        SCOPED_TRACE(isa_name(set->isa));
        const size_t columns = kernels.lanes * kernels.vectors, rows = kernels.max_rows;
        for (size_t k : {4, 9}) {
            const size_t tiles = 3, a_tile = rows * k + 2, c_tile = rows * columns + 3;
            Guarded<float> a(tiles * a_tile), b(k * columns), init(tiles * columns),
                fetched(tiles * k * 16);
            Guarded<float> got(tiles * c_tile), want(tiles * c_tile);
            fill(a), fill(b), fill(init);
            for (size_t i = 0; i < got.size(); i++) got[i] = want[i] = 55.f;
            const GemmBlock block = {0, 0};
            GemmTile tile = {};
            tile.a = a.data(), tile.a_row = k, tile.a_k = 1;
            tile.blocks = &block, tile.num_blocks = 1, tile.block_k = k;
            tile.b = b.data(), tile.init = init.data(), tile.c = got.data();
            tile.init_vector = tile.c_vector = kernels.lanes, tile.c_row = columns;
            tile.low = -1.f, tile.high = INFINITY;
            tile.fetch = {(const char*)fetched.data(), 64};
            tile.more = tiles - 1, tile.a_tile = a_tile, tile.c_tile = c_tile,
            tile.init_tile = columns;
            const GemmTileKernel kernel = full_tile(kernels, rows);
            kernel(tile);
            tile.more = 0;
            for (size_t i = 0; i < tiles; i++) {
                tile.a = a.data() + i * a_tile, tile.init = init.data() + i * columns;
                tile.c = want.data() + i * c_tile;
                kernel(tile);
            }
            for (size_t i = 0; i < got.size(); i++)
                ASSERT_EQ(got[i], want[i]) << "k " << k << " at " << i;
        }
    }
}

// As check_regular below, of pairs.
void check_regular_pairs(GemmTileKernel kernel, GemmTileKernel other, size_t, size_t vectors,
                         size_t rows, bool columns, bool init_rows, size_t num_blocks,
                         bool at_end) {
    const size_t width = 4 * vectors, tiles = 3, pairs = 4 * rows;
    const size_t a_block = tiles * pairs + 5, c_step = columns ? tiles * pairs + 1 : width + 1;
    Halves a(2 * ((num_blocks - 1) * a_block + tiles * pairs), at_end),
        init(2 * (init_rows ? tiles * rows * width : width), at_end),
        b(2 * num_blocks * 8 * width, at_end);
    Halves got(2 * tiles * std::max(rows, vectors) * c_step, at_end), want(got.size(), at_end);
    a.fill(), init.fill(), b.fill();
    for (size_t i = 0; i < got.size(); i++) got[i] = want[i] = Half::from(55.f);
    std::vector<GemmBlock> blocks;
    for (size_t i = 0; i < num_blocks; i++) blocks.push_back({(ptrdiff_t)(i * a_block), i * 4});
    GemmTile tile = {};
    tile.a = a.floats(), tile.a_row = 4, tile.a_k = 1, tile.b = b.floats();
    tile.blocks = blocks.data(), tile.num_blocks = num_blocks, tile.block_k = 4;
    tile.init = init.floats(), tile.init_row = init_rows ? width : 0, tile.init_vector = 4;
    tile.c = want.floats(), tile.c_row = columns ? 4 : c_step;
    tile.c_vector = columns ? c_step : 4;
    tile.more = tiles - 1, tile.a_tile = pairs, tile.init_tile = init_rows ? rows * width : 0;
    tile.c_tile = columns ? pairs : rows * c_step;
    tile.low = num_blocks % 2 ? -.5f : -INFINITY, tile.high = num_blocks % 3 ? INFINITY : .6f;
    other(tile);
    tile.c = got.floats(), tile.block_step = a_block;
    kernel(tile);
    for (size_t i = 0; i < got.size(); i++)
        ASSERT_EQ(got[i], want[i]) << "at " << i << " of " << num_blocks << " blocks";
}

// Blocks of a register's values equally far apart, of which a tile may know: the same bits as from
// a list of any, whatever sums start from, wherever they end, for every number of blocks and tiles.
template <class Type>
void check_regular(GemmTileKernel kernel, GemmTileKernel other, size_t lanes, size_t vectors,
                   size_t rows, bool columns, bool init_rows, size_t num_blocks, bool at_end) {
    const size_t width = lanes * vectors, tiles = 3, floats = lanes * rows;
    const size_t a_block = tiles * floats + 5, c_step = columns ? tiles * floats + 1 : width + 1;
    Guarded<float> a((num_blocks - 1) * a_block + tiles * floats, at_end),
        init(init_rows ? tiles * rows * width : width, at_end);
    Guarded<typename Type::Value> b(num_blocks * lanes * width, at_end);
    Guarded<float> got(tiles * std::max(rows, vectors) * c_step, at_end), want(got.size());
    fill(a), fill(init);
    for (auto& x : b) x = Type::from(uniform());
    for (size_t i = 0; i < got.size(); i++) got[i] = want[i] = 55.f;
    std::vector<GemmBlock> blocks;
    for (size_t i = 0; i < num_blocks; i++) blocks.push_back({(ptrdiff_t)(i * a_block), i * lanes});
    GemmTile tile = {};
    tile.a = a.data(), tile.a_row = lanes, tile.a_k = 1, tile.b = (const float*)b.data();
    tile.blocks = blocks.data(), tile.num_blocks = num_blocks, tile.block_k = lanes;
    tile.init = init.data(), tile.init_row = init_rows ? width : 0, tile.init_vector = lanes;
    tile.c = want.data(), tile.c_row = columns ? lanes : c_step;
    tile.c_vector = columns ? c_step : lanes;
    tile.more = tiles - 1, tile.a_tile = floats, tile.init_tile = init_rows ? rows * width : 0;
    tile.c_tile = columns ? floats : rows * c_step;
    tile.low = num_blocks % 2 ? -.5f : -INFINITY, tile.high = num_blocks % 3 ? INFINITY : .6f;
    other(tile);
    tile.c = got.data(), tile.block_step = a_block;
    kernel(tile);
    for (size_t i = 0; i < got.size(); i++)
        ASSERT_EQ(got[i], want[i]) << "at " << i << " of " << num_blocks << " blocks";
}

// A row's tile, or of one for certain cores that for all, whose bits it has.
GemmTileKernel tile_for_all_cores(const KernelRow& row) {
    for (const KernelRow& other : kernel_rows())
        if (other.slot == row.slot && other.rows == row.rows && other.columns == row.columns &&
            other.core == CpuCore::any)
            return other.tile;
    return row.tile;
}

TEST(Gemm, regular_blocks) {
    for (const KernelRow& row : kernel_rows()) {
        if (!row.tile || is_f16f32(row) || !host_cpu_features().has_all(row.features)) continue;
        const size_t lanes = vector_kernels(best_isa(row.features)).gemm->lanes;
        SCOPED_TRACE(row.name);
        for (size_t blocks = 1; blocks <= 7; blocks++)
            for (int kind = 0; kind < 8; kind++) {
                const bool pairs = is_of_pairs(row);
                const auto check = pairs ? &check_regular_pairs
                                   : row.slot == KernelSlot::half_gemm_tile
                                       ? &check_regular<Half>
                                       : &check_regular<Single>;
                check(row.tile, tile_for_all_cores(row), lanes, row.columns / (pairs ? 8 : lanes),
                      row.rows, kind & 1, kind & 2, blocks, kind & 4);
                if (HasFatalFailure()) return;
            }
    }
}

TEST(Gemm, nan_reaches_the_result) {
    for (const VectorKernels* set : all_sets()) {
        const GemmKernels& kernels = *set->gemm;
        const Isa isa = set->isa;
        const size_t columns = kernels.lanes * kernels.vectors;
        std::vector<float> a(1, NAN), b(columns, 1.f), init(columns, 0.f), c(columns, 0.f);
        const GemmBlock block = {0, 0};
        GemmTile tile = {a.data(),
                         1,
                         1,
                         &block,
                         1,
                         1,
                         b.data(),
                         init.data(),
                         0,
                         kernels.lanes,
                         c.data(),
                         1,
                         kernels.lanes,
                         0.f,
                         6.f,
                         GemmFetch(),
                         0,
                         0,
                         0,
                         0,
                         0};
        full_tile(kernels, 1)(tile);
        for (float x : c) EXPECT_TRUE(isnan(x)) << isa_name(isa);
    }
}

struct PackEntry {
    const char* name;
    GemmPackPanel GemmKernels::*kernel;
    bool row_major;
};
const bool pack_row_major = true, pack_column_major = false;
const PackEntry kPacks[] = {
#define QUOLL_GEMM_PACK(name) {#name, &GemmKernels::name, name},
#define QUOLL_GEMM_VECTOR(name)
#define QUOLL_GEMM_INIT(name, pack)
#include "layer/cpu/gemm/kernels.inc"
#undef QUOLL_GEMM_PACK
#undef QUOLL_GEMM_VECTOR
#undef QUOLL_GEMM_INIT
};

TEST(Gemm, packs) {
    for (Isa isa : available_isas()) {
        const GemmKernels& kernels = *kernel_set(isa).gemm;
        for (const PackEntry& entry : kPacks) {
            for (size_t columns = kernels.lanes; columns <= (size_t)kernels.lanes * kernels.vectors;
                 columns += kernels.lanes) {
                for (size_t count = 1; count <= columns; count++) {
                    for (size_t k : {1, 3, 16, 21}) {
                        const size_t ld = (entry.row_major ? count : k) + 2;
                        const size_t size =
                            entry.row_major ? (k - 1) * ld + count : (count - 1) * ld + k;
                        Guarded<float> src(size), panel(k * columns);
                        fill(src);
                        (kernels.*entry.kernel)(src.data(), ld, k, count, columns, panel.data());
                        for (size_t i = 0; i < k; i++)
                            for (size_t n = 0; n < columns; n++) {
                                const float expected = n >= count        ? 0.f
                                                       : entry.row_major ? src[i * ld + n]
                                                                         : src[n * ld + i];
                                ASSERT_EQ(panel[i * columns + n], expected)
                                    << isa_name(isa) << " " << entry.name << " k " << i << " n "
                                    << n << " count " << count;
                            }
                    }
                }
            }
        }
    }
}

TEST(Gemm, row_times_panels) {
    for (Isa isa : available_isas()) {
        const GemmKernels& kernels = *kernel_set(isa).gemm;
        const size_t columns = kernels.lanes * kernels.vectors;
        for (size_t count = 1; count <= 5 * columns + 1; count++) {
            const size_t panels = (count + columns - 1) / columns;
            for (size_t k : {1, 2, 9}) {
                const size_t a_k = k == 9 ? 3 : 1;
                Guarded<float> a((k - 1) * a_k + 1), b(panels * k * columns), init(count),
                    out(count);
                fill(a);
                fill(b);
                fill(init);
                kernels.row_times_panels(a.data(), a_k, k, b.data(), count, init.data(), out.data(),
                                         -1.f, 2.f);
                for (size_t n = 0; n < count; n++) {
                    double sum = init[n];
                    for (size_t i = 0; i < k; i++)
                        sum += (double)a[i * a_k] *
                               b[n / columns * k * columns + i * columns + n % columns];
                    const double exact = sum < -1 ? -1 : sum > 2 ? 2 : sum;
                    ASSERT_NEAR(out[n], exact, sum_tolerance(k + 1))
                        << isa_name(isa) << " n " << n << " of " << count << " k " << k;
                }
            }
        }
    }
}

void check_init(GemmInitKernel kernel, size_t pack, Isa isa) {
    for (int rows : {1, 2, 7})
        for (size_t count = pack; count <= 9 * pack; count += pack) {
            const size_t row = pack + 2, block = row * rows + 3, width = count + 5;
            Guarded<float> r(block * (count / pack - 1) + row * (rows - 1) + pack), bias(count),
                init(width * (rows - 1) + count);
            fill(r);
            fill(bias);
            for (float& x : init) x = 55.f;
            kernel({r.data(), (ptrdiff_t)row, (ptrdiff_t)block, bias.data(), rows, count,
                    init.data(), width});
            for (size_t i = 0; i < init.size(); i++) {
                const size_t m = i / width, j = i % width;
                ASSERT_EQ(init[i],
                          j < count ? bias[j] + r[m * row + j / pack * block + j % pack] : 55.f)
                    << isa_name(isa) << " pack " << pack << " row " << m << " column " << j;
            }
        }
}

TEST(Gemm, starts_from_residuals) {
    for (Isa isa : available_isas()) {
        const GemmKernels& kernels = *kernel_set(isa).gemm;
#define QUOLL_GEMM_PACK(name)
#define QUOLL_GEMM_VECTOR(name)
#define QUOLL_GEMM_INIT(name, pack) check_init(kernels.name, pack, isa);
#include "layer/cpu/gemm/kernels.inc"
#undef QUOLL_GEMM_PACK
#undef QUOLL_GEMM_VECTOR
#undef QUOLL_GEMM_INIT
    }
}

TEST(Gemm, starts_from_residuals_of_half_floats) {
    const KernelSet* const set = host_kernel_set().f16;
    if (!set) GTEST_SKIP() << "no arithmetic of half floats";
    // In half floats; blocks of 8.
    for (int rows : {1, 5})
        for (size_t count = 8; count <= 72; count += 8) {
            const size_t row = 10, block = row * rows + 2, width = count + 6;
            Halves r(block * (count / 8 - 1) + row * (rows - 1) + 8), bias(count),
                init(width * (rows - 1) + count);
            r.fill(), bias.fill();
            const uint16_t kept = Half::from(77.f);
            for (size_t i = 0; i < init.size(); i++) init[i] = kept;
            set->gemm->init_4({r.floats(), (ptrdiff_t)row / 2, (ptrdiff_t)block / 2, bias.floats(),
                               rows, count / 2, init.floats(), width / 2});
            for (size_t i = 0; i < init.size(); i++) {
                const size_t m = i / width, j = i % width;
                const double sum =
                    j < count ? bias.at(j) + r.at(m * row + j / 8 * block + j % 8) : 77.;
                ASSERT_NEAR(init.at(i), sum, j < count ? 0x1p-11 : 0.) << m << " " << j;
            }
        }
}

// C of m x n for rows of A so far apart; row-major, or in blocks of a register's width. Some of its
// rows are compared with sums of doubles.
std::vector<float> product(const KernelSet& set, size_t m, size_t n, size_t k, size_t a_row,
                           bool blocked, int threads) {
    std::mt19937 rng(7);
    const auto value = [&] { return (float)(rng() % 2001) / 1000 - 1; };
    Guarded<float> a((m - 1) * a_row + k), b(n * k), bias(gemm_bias_size(*set.gemm, n));
    for (float& x : b) x = value();
    for (size_t i = 0; i < bias.size(); i++) bias[i] = i < n ? value() : 0;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < k; j++) a[i * a_row + j] = value();
    const Mat packed = gemm_packed(*set.gemm, b.data(), k, false, n, k);
    const size_t lanes = set.lanes, padded = blocked ? align_size(n, lanes) : n;
    Guarded<float> c(m * padded);
    for (float& x : c) x = 55.f;
    GemmMatrix g = {};
    g.kernels = &set, g.a = a.data(), g.a_row = (ptrdiff_t)a_row, g.a_k = 1;
    g.m = m, g.n = n, g.k = k, g.b = packed, g.bias = bias.data(), g.c = c.data();
    g.c_row = (ptrdiff_t)(blocked ? lanes : n), g.c_pack = blocked ? lanes : n;
    g.c_block = (ptrdiff_t)(m * lanes);
    g.activation = FusedActivation(set, Activation());
    g.activation.low = -20.f;
    gemm_matrix(g, threads);
    for (size_t i = 0; i < m; i += 11)
        for (size_t j = 0; j < n; j++) {
            double sum = bias[j];
            for (size_t x = 0; x < k; x++) sum += (double)a[i * a_row + x] * b[j * k + x];
            const size_t at = blocked ? j / lanes * m * lanes + i * lanes + j % lanes : i * n + j;
            EXPECT_NEAR(c[at], std::max(sum, -20.), sum_tolerance(k + 1)) << i << ", " << j;
        }
    return std::vector<float>(c.begin(), c.end());
}

TEST(Gemm, stores_columns) {
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        const GemmKernels& k = *kernel_set(isa).gemm;
        std::mt19937 rng(3);
        for (int rows = 1; rows <= k.max_rows; rows++) {
            const size_t width = (size_t)k.lanes * k.vectors;
            for (size_t columns = 1; columns <= width; columns++) {
                const size_t step = (size_t)rows + rng() % 5;
                Guarded<float> tile(rows * width, columns % 2);
                Guarded<float> out((columns - 1) * step + rows, columns % 2);
                for (float& x : tile) x = (float)(rng() % 1000);
                for (size_t i = 0; i < out.size(); i++) out[i] = 99.f;
                k.store_columns(tile.data(), width, rows, columns, out.data(), (ptrdiff_t)step);
                for (size_t i = 0; i < out.size(); i++) {
                    const size_t m = i % step, j = i / step;
                    ASSERT_EQ(out[i], m < (size_t)rows ? tile[m * width + j] : 99.f);
                }
            }
        }
    }
}

// Panels that are written to their ends, beyond the last column too.
TEST(Gemm, whole_panels) {
    for (const VectorKernels* each : all_sets()) {
        KernelSet set = {};
        static_cast<VectorKernels&>(set) = *each;
        const size_t step = set.gemm->step, m = 7, k = 3;
        for (size_t n = 1; n <= 2 * step * set.gemm->vectors; n++) {
            const size_t row = align_size(n, step);
            std::vector<float> a(m * k), b(n * k), bias(gemm_bias_size(*set.gemm, n));
            for (float& x : a) x = uniform();
            for (float& x : b) x = uniform();
            Guarded<float> c(m * row);
            const Mat packed = gemm_packed(*set.gemm, b.data(), k, false, n, k);
            GemmMatrix g = {};
            g.kernels = &set, g.a = a.data(), g.a_row = (ptrdiff_t)k, g.a_k = 1;
            g.m = m, g.n = n, g.k = k, g.b = packed, g.bias = bias.data(), g.c = c.data();
            g.c_row = (ptrdiff_t)row, g.c_pack = row, g.whole_panels = true;
            g.activation = FusedActivation(set, Activation());
            gemm_matrix(g, 1);
            for (size_t i = 0; i < m; i++)
                for (size_t j = 0; j < n; j++) {
                    double sum = 0;
                    for (size_t x = 0; x < k; x++) sum += (double)a[i * k + x] * b[j * k + x];
                    ASSERT_NEAR(c[i * row + j], sum, sum_tolerance(k + 1))
                        << isa_name(set.isa) << " n " << n << " at " << i << ", " << j;
                }
        }
    }
}

// Such rows are copied; neither that nor threads change a sum.
TEST(Gemm, rows_a_power_of_two_apart) {
#ifdef QUOLL_EMULATED_CPU
    const std::vector<size_t> depths = {37, 1024};
    const std::vector<int> thread_counts = {3};
#else
    const std::vector<size_t> depths = {37, 1024, 1300};
    const std::vector<int> thread_counts = {1, 3, 5};
#endif
    std::vector<const KernelSet*> sets = {&host_kernel_set()};
    for (Isa isa : available_isas()) sets.push_back(&kernel_set(isa));
    for (const KernelSet* each : sets) {
        const KernelSet& set = *each;
        const size_t rows = set.gemm->max_rows, lanes = set.gemm->lanes;
        const size_t columns = lanes * set.gemm->vectors;
        for (size_t k : depths)
            for (size_t n : {5 * columns, 5 * columns + lanes, 6 * columns - 1})
                for (bool blocked : {false, true}) {
                    const size_t m = 10 * rows + 2, a_row = align_size(k, 1024);
                    const auto expected = product(set, m, n, k, a_row + 3, blocked, 1);
                    // Ten tiles are enough for three threads, and too few for five.
                    for (int threads : thread_counts)
                        ASSERT_EQ(product(set, m, n, k, a_row, blocked, threads), expected)
                            << isa_name(set.isa) << " k " << k << " n " << n << " " << threads;
                }
    }
}

// Where tiles like them, rows are copied into blocks: for k of whole blocks, behind the end of
// which nothing is read, and a last tile and a last panel that are not full.
TEST(Gemm, rows_copied_into_blocks) {
#ifdef QUOLL_EMULATED_CPU
    const std::vector<size_t> depths = {60, 1028};
    const std::vector<int> thread_counts = {3};
#else
    const std::vector<size_t> depths = {4, 60, 1028};
    const std::vector<int> thread_counts = {1, 3};
#endif
    std::vector<const KernelSet*> sets = {&host_kernel_set()};
    for (Isa isa : available_isas()) sets.push_back(&kernel_set(isa));
    for (const KernelSet* each : sets) {
        const KernelSet& set = *each;
        const size_t rows = set.gemm->max_rows, lanes = set.gemm->lanes;
        const size_t columns = lanes * set.gemm->vectors;
        for (size_t k : depths)
            for (size_t n : {9 * columns - 1, 8 * columns + lanes})
                for (size_t m : {2 * rows, 10 * rows - 1}) {
                    SCOPED_TRACE(::testing::Message()
                                 << isa_name(set.isa) << " m " << m << " n " << n << " k " << k);
                    const auto expected = product(set, m, n, k, k, false, 1);
                    for (int threads : thread_counts)
                        ASSERT_EQ(product(set, m, n, k, k + 1, false, threads), expected);
                    if (n % lanes == 0) product(set, m, n, k, k + 1, true, 1);
                }
    }
}

}  // namespace
