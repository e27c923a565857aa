#include "layer/cpu/conv/split_plan.h"

#include <string.h>

#include <algorithm>

#include "scalar_private.h"

namespace quoll {

namespace {

// Cycles of a tile multiplication with its share of the loads, which weigh more the fewer products
// there are (bench_conv, Sapphire Rapids).
double tile_cycles(int products) { return products == 6 ? 21.5 : products == 3 ? 25 : 36; }

// Whether kernels write whole vectors of C themselves.
bool is_direct(const TileShape& s) {
    return s.out_pack % 16 == 0 || s.out_pack >= (size_t)s.out_channels;
}

TilePlan::Unit unit_of(const SplitGemmKernels& kernels, const TileShape& shape) {
    TilePlan::Unit unit;
    unit.step_channels = kSplitK;
    unit.position_bytes = kernels.terms * kUnitRowBytes;
    unit.step_bytes = split_panel_size(kernels.terms, 1) * sizeof(uint16_t);
    unit.step_cycles = kernels.products * tile_cycles(kernels.products);
    unit.value_cycles = .2 * kernels.terms;
    unit.finish_cycles = 200;
    unit.row_cycles = is_direct(shape) ? 0 : 120;
    return unit;
}

}  // namespace

const SplitGemmKernels* split_kernels_for(const Option& opt) {
    const int products = opt.use_bf16_storage ? 1 : opt.use_fp32_split;
    return products == 6 || products == 3 || products == 1 ? usable_split_gemm_kernels(products)
                                                           : nullptr;
}

double SplitPlan::cycles(const SplitGemmKernels& kernels, const TileShape& shape, int threads) {
    return TilePlan(unit_of(kernels, shape), shape, threads).cycles();
}

SplitPlan::SplitPlan(const SplitGemmKernels& kernels, const TileShape& shape, int threads)
    : kernels_(kernels), plan_(unit_of(kernels, shape), shape, threads) {}

// ---------------------------------------------------------------- weights

namespace {

size_t steps_of(int in_channels, int taps) { return split_steps(in_channels) * taps; }

}  // namespace

size_t SplitPlan::packed_size(const SplitGemmKernels& kernels, int in_channels, int taps,
                              int out_channels) {
    return split_packed_size(kernels.terms, out_channels, steps_of(in_channels, taps));
}

void SplitPlan::pack(const SplitGemmKernels& kernels, const float* weights, int in_channels,
                     int taps, int out_channels, uint16_t* packed) {
    // The order of steps: blocks of channels, and the taps inside one, whose inputs then come from
    // the first-level cache.
    std::vector<int> order;
    order.reserve(steps_of(in_channels, taps) * kSplitK);
    for (int c = 0; c < in_channels; c += kSplitK)
        for (int t = 0; t < taps; t++)
            for (int i = c; i < c + kSplitK; i++)
                order.push_back(i < in_channels ? i * taps + t : -1);
    split_pack(kernels.terms, weights, (size_t)in_channels * taps, order.data(), out_channels,
               steps_of(in_channels, taps), packed);
}

// ---------------------------------------------------------------- one run

class SplitPlan::Work final : public TilePlan::Work {
public:
    Work(const SplitPlan& plan, const FusedActivation& activation)
        : kernels(plan.kernels_), plan(plan.plan_), shape(plan.shape()), activation(activation) {}
    void begin(int tile_rows) const override { kernels.begin(tile_rows); }
    void end() const override { kernels.end(); }
    void pad(char* to, size_t positions) const override {
        memset(to, 0, positions * kernels.terms * kUnitRowBytes);
    }
    void lay_out(ptrdiff_t at, int channel, size_t pixels, char* to) const override;
    void multiply(const char* a, size_t block, size_t panel) const override;

    const SplitGemmKernels& kernels;
    const TilePlan& plan;
    const TileShape& shape;
    const FusedActivation& activation;
    const void* in;
    const char* weights;
    const float* bias;
    void* out;
    const void* residual;
    ptrdiff_t residual_block;

private:
    // Columns of C that one panel gives.
    struct Panel {
        size_t n0, columns;
        SplitTileKernel kernels[kUnitTiles];
        bool direct;
        ptrdiff_t c, c_vector, residual, r_vector;
    };
    Panel make_panel(size_t index) const;
    void run_tiles(const Panel& panel, SplitTile* tile) const;
    void run_with_pass(const Panel& panel, SplitTile* tile) const;
    void run_through_buffer(const Panel& panel, SplitTile* tile) const;
    float residual_at(size_t column, int32_t place) const;
    void store_row(const Panel& panel, const float* from, int32_t place) const;
};

void SplitPlan::Work::lay_out(ptrdiff_t at, int channel, size_t pixels, char* to) const {
    const TileShape& s = shape;
    const int kernel = s.in_pack == 16 ? 3 : s.in_pack == 8 ? 2 : s.in_pack == 4 ? 1 : 0;
    SplitInput input;
    input.src = s.narrow_in ? (const void*)((const uint16_t*)in + at) : (const float*)in + at;
    input.src_pixel = s.x.stride * s.in_pixel;
    input.src_block = s.in_block;
    input.channels = std::min<int>(kSplitK, s.in_channels - channel);
    input.pixels = pixels;
    input.dst = (uint16_t*)to;
    input.dst_pixel = (ptrdiff_t)kernels.terms * kSplitK;
    (s.narrow_in ? kernels.copy : kernels.input)[kernel](input);
}

namespace {

ptrdiff_t column_offset(const TileShape& s, size_t n, ptrdiff_t block) {
    return (ptrdiff_t)(n / s.out_pack) * block + (ptrdiff_t)(n % s.out_pack);
}

// Applies the activation to rows of C; those that touch are one run.
void finish_rows(const FusedActivation& activation, float* c, const int32_t* places, int rows,
                 size_t columns) {
    for (int m = 0; m < rows;) {
        if (places[m] < 0) {
            m++;
            continue;
        }
        int end = m + 1;
        while (end < rows && places[end] == places[end - 1] + (int32_t)columns) end++;
        activation.finish(c + places[m], (end - m) * columns);
        m = end;
    }
}

}  // namespace

SplitPlan::Work::Panel SplitPlan::Work::make_panel(size_t index) const {
    const TileShape& s = shape;
    Panel panel;
    panel.n0 = index * kUnitColumns;
    panel.columns = std::min<size_t>(kUnitColumns, s.out_channels - panel.n0);
    const int full = panel.columns > 16;
    for (int t = 0; t < kUnitTiles; t++) panel.kernels[t] = kernels.tile[t][full];
    panel.direct = is_direct(s);
    panel.c = column_offset(s, panel.n0, s.out_block);
    panel.residual = column_offset(s, panel.n0, residual_block);
    panel.c_vector = full ? column_offset(s, panel.n0 + 16, s.out_block) - panel.c : 0;
    panel.r_vector = full ? column_offset(s, panel.n0 + 16, residual_block) - panel.residual : 0;
    return panel;
}

// One call of a kernel, whose A and B are set.
void SplitPlan::Work::run_tiles(const Panel& panel, SplitTile* tile) const {
    const int count = tile->a_tile ? kUnitTiles : 1, rows = count * tile->tile_rows;
    const int32_t* places = tile->rows;
    tile->low = activation.low;
    tile->high = activation.high;
    if (!panel.direct || (activation.pass && shape.narrow_out && residual))
        return run_through_buffer(panel, tile);
    if (activation.pass && shape.narrow_out) return run_with_pass(panel, tile);
    tile->narrow = shape.narrow_out;
    tile->c = tile->narrow ? (void*)((uint16_t*)out + panel.c) : (float*)out + panel.c;
    tile->c_vector = panel.c_vector;
    const size_t size = tile->narrow ? sizeof(uint16_t) : sizeof(float);
    tile->residual = residual ? (const char*)residual + panel.residual * size : nullptr;
    tile->r_vector = panel.r_vector;
    panel.kernels[count - 1](*tile);
    for (size_t n = 0; activation.pass && n < panel.columns; n += 16)
        finish_rows(activation, (float*)tile->c + (n ? panel.c_vector : 0), places, rows,
                    std::min<size_t>(16, panel.columns - n));
}

// The same where f32 results need a pass before they are narrowed.
void SplitPlan::Work::run_with_pass(const Panel& panel, SplitTile* tile) const {
    const int count = tile->a_tile ? kUnitTiles : 1, rows = count * tile->tile_rows;
    const int full = panel.columns > 16, width = full ? kUnitColumns : kUnitColumns / 2;
    alignas(64) float sums[kUnitTiles * kUnitRows * kUnitColumns];
    int32_t own[kUnitTiles * kUnitRows];
    for (int m = 0; m < rows; m++) own[m] = m * width;
    SplitTile wide = *tile;
    wide.c = sums;
    wide.narrow = false;
    wide.rows = own;
    wide.c_vector = 16;
    wide.columns = width;
    wide.residual = nullptr;
    panel.kernels[count - 1](wide);
    activation.finish(sums, (size_t)rows * width);
    tile->narrow = true;
    tile->c = (uint16_t*)out + panel.c;
    tile->c_vector = panel.c_vector;
    tile->residual = nullptr;
    kernels.store[count - 1][full](*tile, sums);
}

// The same where the kernel's results are not yet what C holds.
void SplitPlan::Work::run_through_buffer(const Panel& panel, SplitTile* tile) const {
    const int count = tile->a_tile ? kUnitTiles : 1, rows = count * tile->tile_rows;
    const int32_t* places = tile->rows;
    alignas(64) float buffer[kUnitTiles * kUnitRows * kUnitColumns];
    alignas(64) float added[kUnitTiles * kUnitRows * kUnitColumns];
    int32_t own[kUnitTiles * kUnitRows];
    for (int m = 0; m < rows; m++) {
        own[m] = places[m] < 0 ? -1 : m * kUnitColumns;
        for (size_t j = 0; residual && places[m] >= 0 && j < panel.columns; j++)
            added[m * kUnitColumns + j] = residual_at(panel.n0 + j, places[m]);
    }
    tile->c = buffer;
    tile->narrow = false;
    tile->rows = own;
    tile->c_vector = tile->r_vector = 16;
    tile->residual = residual ? added : nullptr;
    panel.kernels[count - 1](*tile);
    for (int m = 0; m < rows; m++) {
        if (places[m] < 0) continue;
        activation.finish(buffer + m * kUnitColumns, panel.columns);
        store_row(panel, buffer + m * kUnitColumns, places[m]);
    }
}

float SplitPlan::Work::residual_at(size_t column, int32_t place) const {
    const ptrdiff_t at = place + column_offset(shape, column, residual_block);
    return shape.narrow_out ? float_from_bfloat(((const uint16_t*)residual)[at])
                            : ((const float*)residual)[at];
}

// A row of a panel's columns to its place in C.
void SplitPlan::Work::store_row(const Panel& panel, const float* from, int32_t place) const {
    for (size_t j = 0; j < panel.columns;) {
        const size_t inside = (panel.n0 + j) % shape.out_pack;
        const size_t run = std::min(panel.columns - j, shape.out_pack - inside);
        const ptrdiff_t at = place + column_offset(shape, panel.n0 + j, shape.out_block);
        for (size_t i = 0; i < run && shape.narrow_out; i++)
            ((uint16_t*)out)[at + i] = bfloat_from_float(from[j + i]);
        for (size_t i = 0; i < run && !shape.narrow_out; i++) ((float*)out)[at + i] = from[j + i];
        j += run;
    }
}

void SplitPlan::Work::multiply(const char* a, size_t block, size_t index) const {
    const Panel panel = make_panel(index);
    SplitTile tile = {};
    tile.bias = bias + panel.n0;
    tile.columns = panel.columns;
    for (size_t i = 0; i < plan.pairs(block); i++) {
        const TilePlan::Pair pair = plan.pair(a, weights, block, index, i);
        (TileOperands&)tile = pair.operands;
        tile.rows = pair.places;
        run_tiles(panel, &tile);
    }
}

void SplitPlan::run(const void* in, const uint16_t* weights, const float* bias, void* out,
                    const void* residual, ptrdiff_t residual_block,
                    const FusedActivation& activation, float* workspace) const {
    Work work(*this, activation);
    work.in = in;
    work.weights = (const char*)weights;
    work.bias = bias;
    work.out = out;
    work.residual = residual;
    work.residual_block = residual_block;
    plan_.run(work, workspace);
}

}  // namespace quoll
