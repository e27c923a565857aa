#include "layer/vulkan/conv_tiles.h"

#include <limits.h>

#include <algorithm>

#include "gpu/tuning.h"

namespace quoll {

namespace {

// The number of processors if no extension tells it.
const int kProcessors = 16;

thread_local ConvTiling forced;
thread_local bool is_forced = false, all_lanes = false;

// Tiles of conv_matrix.comp. What follows about them was fitted to `bench_gpu --fp16 --sweep` on an
// H200 and an H100. kLarge is for products that fill the device.
const ConvTile kLarge = {32, 64, 64, 2, 2, 1, 2}, kLargest = {64, 64, 64, 2, 2, 1, 2};
const double kLargeMacs = 3e8;
// Tiles for products that fill the device several times: each subgroup computes 32x64 or 64x32, so
// that it loads less for each product, from one tile in shared memory, since several groups of a
// processor take turns anyway. If the depth is less than kShallowDepth, there is little to multiply
// for what is loaded.
const ConvTile kWide = {64, 128, 64, 2, 2, 1, 1}, kTall = {128, 64, 64, 2, 2, 1, 1};
const ConvTile kShallow = {128, 64, 32, 4, 2, 1, 2};
const int kShallowDepth = 256;
// Only chosen by measuring (tune.cpp): it is 10 % faster for some sizes, but for no whole network
// that was timed, and drivers take up to a second and more to compile it.
const ConvTile kSquare = {128, 128, 64, 2, 2, 1, 1};
// Tiles of product_matrix.comp, which fill the last round of groups better for some sizes.
const ConvTile kWider = {96, 128, 64, 2, 2, 1, 1}, kWideRows = {80, 128, 64, 1, 4, 1, 1};
const struct {
    ConvTile tile;
    int resident;  // groups that run on a processor at a time
} kWides[] = {{kWide, 4}, {kWider, 3}, {kWideRows, 4}};
struct SmallTile {
    ConvTile tile;
    int resident;  // groups that run on a processor at a time
    double step;   // us
};
const SmallTile kSmall[] = {{{32, 32, 128, 2, 2, 2, 2}, 2, 0.6},
                            {{32, 32, 64, 2, 2, 2, 2}, 4, 0.45}};
// Microseconds: for adding up parts at all, and for each part.
const double kJoin = 1.8, kPart = 0.08;
// For conv_window.comp's small tiles: microseconds per chunk of the channels, on an H100.
const double kWindowChunk = 1.1;
const int kWindowResident = 2;  // groups that run on a processor at a time
// Steps of s8 have more loads and roundings: each takes longer by this factor. No more than two
// groups of a processor gain by running at once; further ones start later (us). 784 x 128 x 1152
// takes 10.2 us in one part and 13.0 in 5, 196 x 512 x 1024 10.6 in one and 16.0 in 4, 196 x 256 x
// 1024 10.3 in one and 9.3 in 4 (H100).
const double kInt8Step = 2., kInt8Round = 3.5, kInt8Join = 2.6;
const int kInt8Resident = 2;

// Of conv_lanes.comp, fixed; the multiplications from which on it is worth its compilation, which
// takes twice as long as that of conv_tiled.comp.
const double kLanesMacs = 1e6;
const ConvTile kLanes = {32, 16, 4, 4, 4, 1, 1};

// For conv_tiled.comp and product.comp: the groups that a processor should have, and the steps that
// each group should have at least.
const int kTiledGroups = 9, kTiledSteps = 5;
// For product.comp: the number of groups of the larger tile from which on that tile is taken, and
// what that takes of shared memory, of which some devices have 16 KB.
const int kManyGroups = 4;
const uint32_t kLargeProduct = 25 << 10;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Microseconds in addition to those of a dispatch.
double cost(const SmallTile& small, int tiles, int steps, int splits, int processors, bool int8) {
    const int resident = int8 ? std::min(small.resident, kInt8Resident) : small.resident;
    const int rounds = ceil_div(tiles * splits, resident * processors);
    return rounds * ceil_div(steps, splits) * small.step * (int8 ? kInt8Step : 1.) +
           (int8 ? (rounds - 1) * kInt8Round : 0.) +
           (splits > 1 ? (int8 ? kInt8Join : kJoin) + kPart * splits : 0.);
}

}  // namespace

const std::vector<ConvTile>& conv_tiles(bool matrix) {
    static const std::vector<ConvTile> tiled = {{32, 32, 16, 4, 1, 1, 1}, {64, 64, 16, 8, 2, 1, 1}};
    static const std::vector<ConvTile> matrices = {
        kSmall[0].tile, kSmall[1].tile, kLarge,  kLargest, kWide,
        kTall,          kShallow,       kSquare, kWider,   kWideRows};
    return matrix ? matrices : tiled;
}

bool stores_at_once(const ConvTile& tile) {
    return tile.k * tile.rows * (tile.columns / 4 + 1) <= 3072;
}

// Tiles of 96 rows are stored in three parts, of which common/matrix.glsl divides none.
static bool can_divide(const ConvTile& tile) { return tile.rows != kWider.rows; }

static std::vector<uint32_t> words_of(const ConvTiling& tiling) {
    const ConvTile& t = tiling.tile;
    std::vector<uint32_t> words;
    for (int field : {t.rows, t.columns, t.depth, t.m, t.n, t.k, t.buffers, tiling.splits})
        words.push_back((uint32_t)field);
    return words;
}

static bool is_product(Shader shader) {
    return shader == Shader::product || shader == Shader::product_half;
}

// Whether a shader runs a tile: one of its own, for which the device has the shared memory.
static bool runs_tile(const GpuDevice& device, Shader shader, bool matrix, const ConvTile& tile) {
    const std::vector<ConvTile>& all = conv_tiles(matrix);
    const bool own = std::any_of(all.begin(), all.end(), [&](const ConvTile& t) {
        return words_of({t, 1}) == words_of({tile, 1});
    });
    return own && (!is_product(shader) || tile.rows == all[0].rows ||
                   device.limits().maxComputeSharedMemorySize >= kLargeProduct);
}

// Reads the numbers of one of the tiles; false if it is none.
static bool read_tiling(const std::vector<uint32_t>& words, bool matrix, int depth,
                        ConvTiling* tiling) {
    for (const ConvTile& tile : conv_tiles(matrix)) {
        const int splits = words.size() == 8 ? (int)words[7] : 0;
        if (splits < 1 || splits > std::min(kMostSplits, std::max(1, ceil_div(depth, tile.depth))))
            continue;
        if (splits > 1 && !can_divide(tile)) continue;
        *tiling = {tile, splits};
        if (words_of(*tiling) == words) return true;
    }
    return false;
}

// The tile for a product that fills the device with groups of kLarge.
static ConvTile filling_tile(Shader shader, int processors, const ConvProduct& p) {
    const auto tiles = [&](const ConvTile& t) {
        return ceil_div(p.rows, t.rows) * ceil_div(p.columns, t.columns) * p.groups;
    };
    if (p.depth < kShallowDepth) return tiles(kShallow) >= processors ? kShallow : kLarge;
    const ConvTile& tile = p.columns > kWide.columns / 2 ? kWide : kTall;
    if (tiles(tile) < processors) return kLarge;
    if (shader != Shader::product_matrix || p.columns <= kWide.columns / 2) return tile;
    // The number of rounds of groups, times what each computes: all compute about as much in a
    // given time.
    ConvTile best = kWide;
    int least = INT_MAX;
    for (const auto& wide : kWides) {
        const int at_once = wide.resident * processors;
        const int made = wide.resident * wide.tile.rows * wide.tile.columns;
        const int all = ceil_div(tiles(wide.tile), at_once) * made;
        if (all < least) best = wide.tile, least = all;
    }
    return best;
}

static ConvTiling expected_tiling(const GpuDevice& device, Shader shader, bool matrix,
                                  const ConvProduct& p) {
    const uint32_t known = device.features().processors;
    const int processors = known ? (int)known : kProcessors;
    const auto tiles = [&](const ConvTile& t) {
        return ceil_div(p.rows, t.rows) * ceil_div(p.columns, t.columns) * p.groups;
    };
    const double macs = (double)p.rows * p.columns * p.depth * p.groups;
    if (!matrix) {
        const std::vector<ConvTile>& all = conv_tiles(false);
        const bool many = is_product(shader) && runs_tile(device, shader, false, all[1]) &&
                          tiles(all[1]) >= kManyGroups * processors;
        const ConvTile& tile = all[many];
        const int wanted = (kTiledGroups * processors + tiles(tile) / 2) / tiles(tile);
        const int most = std::min(kMostSplits, ceil_div(p.depth, tile.depth) / kTiledSteps);
        return {tile, std::max(1, std::min(wanted, most))};
    }
    const bool fills = tiles(kLarge) * 2 >= 5 * processors && p.columns > 32;
    // product_matrix.comp gains from small tiles up to there: 197 x 768 x 3072 18.6 instead of 22.3
    // us, 197 x 2304 x 768 13.9 instead of 14.9 (H100).
    if (fills) return {filling_tile(shader, processors, p), 1};
    if (macs > kLargeMacs && shader != Shader::product_matrix) {
        // kLargest, of twice the size, is taken if there is at least half a group of it per
        // processor, two of which run at a time: fewer loads per product.
        const bool larger = tiles(kLargest) * 2 >= processors && p.columns > 32;
        const ConvTile& tile = larger ? kLargest : kLarge;
        // One more group than run at a time would take as long as all of them.
        const int resident = larger ? 2 : 3;
        const int splits = resident * processors / tiles(tile);
        return {tile, std::max(1, std::min(splits, ceil_div(p.depth, 4 * tile.depth)))};
    }
    ConvTiling best = {kSmall[0].tile, 1};
    double least = 1e30;
    for (const SmallTile& small : kSmall) {
        const int steps = ceil_div(p.depth, small.tile.depth);
        for (int splits = 1; splits <= std::min(steps, kMostSplits); splits++) {
            const double us = cost(small, tiles(small.tile), steps, splits, processors,
                                   shader == Shader::conv_matrix_int8);
            if (us < least) best = {small.tile, splits}, least = us;
        }
    }
    return best;
}

ConvTiling choose_tiling(Recorder& r, Shader shader, bool matrix, const ConvProduct& p) {
    if (shader == Shader::conv_lanes || shader == Shader::conv_lanes_planar) return {kLanes, 1};
    std::vector<uint32_t> key = {(uint32_t)shader, (uint32_t)r.storage(), matrix};
    for (int size : {p.rows, p.columns, p.depth, p.groups}) key.push_back((uint32_t)size);
    std::vector<uint32_t> form;
    ConvTiling chosen;
    if (is_forced && runs_tile(r.device(), shader, matrix, forced.tile)) {
        const int stages = std::max(1, ceil_div(p.depth, forced.tile.depth));
        chosen = {forced.tile, can_divide(forced.tile) ? std::min(forced.splits, stages) : 1};
    } else if (!r.device().tuning().find(key, &form) ||
               !read_tiling(form, matrix, p.depth, &chosen) ||
               !runs_tile(r.device(), shader, matrix, chosen.tile)) {
        chosen = expected_tiling(r.device(), shader, matrix, p);
    }
    r.set_choice({key, words_of(chosen)});
    return chosen;
}

Words tile_constants(const ConvTile& t, const MatrixUnits& units, bool int8) {
    return {t.subgroups() * (int)units.subgroup,
            t.rows,
            t.columns,
            int8 ? t.depth * 2 : t.depth,
            t.m,
            t.n,
            t.k,
            t.buffers,
            units.m,
            units.n,
            int8 ? units.int8_k : units.k};
}

uint32_t window_splits(const GpuDevice& device, uint32_t tiles, uint32_t chunks) {
    const int known = (int)device.features().processors, processors = known ? known : kProcessors;
    int best = 1;
    double least = 0.;
    for (int splits = 1; splits <= std::min((int)chunks, kMostSplits); splits++) {
        const int rounds = ceil_div((int)tiles * splits, kWindowResident * processors);
        const double cost = rounds * ceil_div((int)chunks, splits) * kWindowChunk +
                            (splits > 1 ? kJoin + kPart * splits : 0.);
        if (splits == 1 || cost < least) best = splits, least = cost;
    }
    return (uint32_t)best;
}

void add_split(Recorder& r, const ConvTiling& tiling, uint32_t tiles, const Binding& any,
               std::vector<Binding>* bindings) {
    if (tiling.splits == 1) {
        bindings->insert(bindings->end(), {any, any});
        return;
    }
    const ConvTile& t = tiling.tile;
    const size_t bytes = (size_t)tiles * tiling.splits * t.rows * t.columns * sizeof(float);
    bindings->push_back(r.write_block(r.make_block(bytes)));
    bindings->push_back(r.counters(tiles));
}

bool takes_lanes(const Recorder& r, const ConvProduct& p) {
    const double macs = (double)p.rows * p.columns * p.depth * p.groups;
    return r.has_lanes() && !is_forced && (macs >= kLanesMacs || all_lanes);
}

void force_lanes(bool all) { all_lanes = all; }

void force_tiling(const ConvTiling* tiling) {
    is_forced = tiling != nullptr;
    if (tiling) forced = *tiling;
}

}  // namespace quoll
