// Windows at steps of 2: the rows of their products, of which tiles have unlike numbers.
#include <algorithm>

#include "layer/cpu/winograd/winograd_plan.h"

namespace quoll {

// All tiles have all points but the fourth, which is that of tiles of kWinogradOut outputs alone,
// and of odd inputs as many as there are outputs.
void WinogradAxis::points_before(int tile, int* counts) const {
    for (int id = 0; id < kWinogradOdd; id++) counts[id] = tile;
    if (big != small) counts[3] = std::min(tile, bigs);
    counts[kWinogradOdd] = std::min(begin(tile), length);
}

// Tiles are in the order of the outputs.
WinogradPlan::Tile WinogradPlan::strided_tile(int i) const {
    const int x = i % x_.tiles(), y = i / x_.tiles() % y_.tiles();
    Tile t = {};
    t.x = x_.begin(x), t.y = y_.begin(y), t.z = i / (x_.tiles() * y_.tiles());
    t.w = x < x_.bigs ? x_.big : x_.small;
    t.h = y < y_.bigs ? y_.big : y_.small;
    return t;
}

// step: floats from row to row.
WinogradStridedTile WinogradPlan::strided_tile(const Tile& t, const int* rows, size_t step) {
    WinogradStridedTile tile = {t.w, t.h, t.there_w, t.there_h, step * sizeof(float), {}};
    for (int i = 0; i < kWinogradPoints; i++) tile.sets[i] = rows[i] * (ptrdiff_t)tile.step;
    return tile;
}

// Rows of each set that the tiles before this one have.
void WinogradPlan::strided_rows_before(int tile, int* rows) const {
    const int x = tile % x_.tiles(), y = tile / x_.tiles() % y_.tiles();
    const int z = tile / (x_.tiles() * y_.tiles());
    int line[kWinogradIn], left[kWinogradIn], slice[kWinogradIn], above[kWinogradIn];
    int below[kWinogradIn];
    x_.points_before(x_.tiles(), line);
    x_.points_before(x, left);
    y_.points_before(y_.tiles(), slice);
    y_.points_before(y, above);
    y_.points_before(y + 1, below);
    for (int id_y = 0; id_y < kWinogradIn; id_y++) {
        const int lines = z * slice[id_y] + above[id_y], here = below[id_y] - above[id_y];
        for (int id = 0; id < kWinogradIn; id++) *rows++ = lines * line[id] + here * left[id];
    }
}

WinogradPlan::StridedRows::StridedRows(const WinogradPlan& plan, int first, int tiles) {
    begin[0] = 0;
    if (!plan.is_strided()) return;
    int after[kWinogradPoints];
    plan.strided_rows_before(first, before);
    plan.strided_rows_before(first + tiles, after);
    for (int i = 0; i < kWinogradPoints; i++) begin[i + 1] = begin[i] + after[i] - before[i];
}

// The first row of a tile in each set.
void WinogradPlan::StridedRows::find(const WinogradPlan& plan, int tile, int* rows) const {
    plan.strided_rows_before(tile, rows);
    for (int i = 0; i < kWinogradPoints; i++) rows[i] += begin[i] - before[i];
}

// sums: [row][column].
void WinogradPlan::multiply_strided(const Blobs& b, const Inputs& inputs, const Part& part,
                                    float* sums) const {
    const StridedRows sums_rows(*this, part.first, part.tiles);
    int rows[kWinogradPoints];
    inputs.rows->find(*this, part.first, rows);
    GemmMatrix g = product(b, inputs, part);
    for (int i = 0; i < sets_; i++) {
        g.m = sums_rows.begin[i + 1] - sums_rows.begin[i];
        if (g.m == 0) continue;
        g.a = inputs.points + rows[i] * tile_step();
        g.c = sums + sums_rows.begin[i] * part.columns;
        multiply_set(b, part, i, &g);
    }
    for (int t = part.first; t < part.first + part.tiles; t++) {
        sums_rows.find(*this, t, rows);
        transform_output(b, {sums, part.columns, rows}, t, part);
    }
}

}  // namespace quoll
