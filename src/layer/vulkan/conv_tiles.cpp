#include "layer/vulkan/conv_tiles.h"

#include <algorithm>

namespace quoll {

namespace {

// Where no extension tells how many processors there are.
const int kProcessors = 16;

ConvTiling forced;
bool is_forced = false;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace

const std::vector<ConvTile>& conv_tiles(bool matrix) {
    static const std::vector<ConvTile> tiled = {{32, 32, 16, 4, 1, 1, 1}, {64, 64, 16, 8, 2, 1, 1}};
    static const std::vector<ConvTile> matrices = {
        {32, 32, 64, 2, 2, 1, 2},  {32, 32, 64, 2, 2, 2, 2},  {32, 32, 64, 2, 2, 4, 2},
        {32, 32, 128, 2, 2, 2, 2}, {32, 32, 128, 2, 2, 4, 2}, {32, 64, 64, 2, 2, 1, 2},
        {32, 64, 64, 2, 2, 2, 2},  {32, 64, 64, 2, 4, 1, 2},  {32, 64, 64, 2, 2, 4, 2},
        {32, 64, 128, 2, 2, 2, 1}, {32, 64, 128, 2, 2, 4, 1}, {64, 32, 64, 2, 2, 1, 2},
        {64, 32, 64, 2, 2, 2, 2},  {64, 64, 64, 2, 2, 1, 2},  {64, 64, 64, 2, 2, 2, 2},
        {64, 64, 64, 4, 2, 1, 2},  {64, 64, 32, 2, 2, 2, 2},  {128, 64, 32, 4, 2, 1, 2},
        {128, 64, 32, 2, 2, 1, 2}, {128, 64, 64, 4, 2, 1, 1}, {64, 128, 32, 2, 4, 1, 2}};
    return matrix ? matrices : tiled;
}

ConvTiling choose_tiling(const GpuFeatures& features, bool matrix, const ConvProduct& p) {
    if (is_forced) {
        const int stages = std::max(1, ceil_div(p.depth, forced.tile.depth));
        return {forced.tile, std::min(forced.splits, stages)};
    }
    const int processors = features.processors ? (int)features.processors : kProcessors;
    const std::vector<ConvTile>& all = conv_tiles(matrix);
    const auto groups = [&](const ConvTile& t) {
        return ceil_div(p.rows, t.rows) * ceil_div(p.columns, t.columns) * p.groups;
    };
    const ConvTile& small = matrix ? all[p.columns <= 32 ? 12 : 6] : all[0];
    const ConvTile& large = matrix ? all[17] : all[1];
    if (groups(large) >= 2 * processors && p.columns > 32) return {large, 1};
    const int stages = ceil_div(p.depth, small.depth);
    const int splits = 2 * processors / std::max(1, groups(small));
    return {small, std::max(1, std::min(std::min(splits, 16), stages / 2))};
}

void force_tiling(const ConvTiling* tiling) {
    is_forced = tiling != nullptr;
    if (tiling) forced = *tiling;
}

}  // namespace quoll
