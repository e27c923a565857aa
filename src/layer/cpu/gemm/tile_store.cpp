#include "layer/cpu/gemm/tile_store.h"

#include <math.h>

#include <algorithm>

namespace quoll {

int tile_group(const TileShape& s) {
    if (s.out_pack % 16 == 0 || s.out_pack >= (size_t)s.out_channels) return 16;
    return s.out_pack <= 8 && 8 % s.out_pack == 0 ? (int)s.out_pack : 0;
}

namespace {

// Avoids a division, which small products would otherwise have for each panel of each call.
ptrdiff_t column_offset(const TileShape& s, size_t n, ptrdiff_t block) {
    if (n < s.out_pack) return (ptrdiff_t)n;
    if (s.out_pack == 16) return (ptrdiff_t)(n / 16) * block + (ptrdiff_t)(n % 16);
    return (ptrdiff_t)(n / s.out_pack) * block + (ptrdiff_t)(n % s.out_pack);
}

}  // namespace

SplitStore tile_store(const TileShape& s, size_t n0, int width, const float* bias,
                      const TileTarget& target, const FusedActivation& activation) {
    const ptrdiff_t size = s.reduced_out ? sizeof(uint16_t) : sizeof(float);
    SplitStore store = {};
    store.columns = (int)std::min<size_t>(width, s.out_channels - n0);
    store.width = store.columns > 16 ? kUnitColumns : kUnitColumns / 2;
    store.bias = bias ? bias + n0 : nullptr;
    store.bf16 = s.reduced_out;
    store.group = tile_group(s);
    store.c = (char*)target.out + column_offset(s, n0, s.out_block) * size;
    const auto group_step = [&](ptrdiff_t block) {
        return column_offset(s, n0 + store.group, block) - column_offset(s, n0, block);
    };
    store.c_group = group_step(s.out_block);
    store.r_group = group_step(target.residual_block);
    if (target.residual)
        store.residual =
            (const char*)target.residual + column_offset(s, n0, target.residual_block) * size;
    store.low = activation.low, store.high = activation.high;
    const bool full = store.group == 16 && store.columns == width;
    store.slope = full ? activation.max_slope() : 1.f;
    return store;
}

bool has_non_finite(const TileShape& s, const float* out) {
    for (int y = 0; y < s.y.out; y++)
        for (int x = 0; x < s.x.out; x++)
            if (!isfinite(out[y * s.out_row + x * s.out_pixel])) return true;
    for (int n = 0; n < s.out_channels; n++)
        if (!isfinite(out[column_offset(s, (size_t)n, s.out_block)])) return true;
    return false;
}

bool is_whole(const SplitStore& store, int columns, const FusedActivation& activation) {
    return store.group == 16 && store.columns == columns &&
           (!activation.pass || store.slope != 1.f);
}

void finish_tile_sums(const SplitStoreKernels& kernels, const SplitStore& store,
                      const FusedActivation& activation, float* sums, int rows) {
    if (!activation.pass || store.slope != 1.f) return kernels.store(store, sums, rows);
    kernels.settle(store, sums, rows);
    activation.finish(sums, (size_t)rows * store.width);
    SplitStore rest = store;
    rest.bias = nullptr;
    rest.residual = nullptr;
    rest.slope = 1.f;
    rest.low = -INFINITY, rest.high = INFINITY;
    kernels.store(rest, sums, rows);
}

}  // namespace quoll
