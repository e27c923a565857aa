#include "layer/cpu/gemm/split_plan.h"

#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/cpu/gemm/tile_store.h"

namespace quoll {

namespace {

bool has_windows(const TileShape& s) {
    return s.in_pack == 1 && s.x.kernel > 1 && s.x.dilation == 1 && s.in_channels <= kSplitPixel;
}

// What a TilePlan has as input: wide windows have several steps per row.
TileShape laid_out(const TileShape& s) {
    return has_windows(s) ? shape_of_windows(s, kSplitPixel) : s;
}

// Steps, those of all their k pairs, and the pairs of the others.
struct Steps {
    size_t count, full;
    int last_pairs;
    // Of kSplitK / 2 pairs each, for kernels that leave zeros out.
    double taken() const {
        return (double)full + (double)(count - full) * last_pairs / (kSplitK / 2);
    }
};
Steps steps_of(const TileShape& shape) {
    const TileShape s = laid_out(shape);
    const size_t taps = (size_t)s.x.kernel * s.y.kernel;
    return {split_steps(s.in_channels) * taps, s.in_channels / kSplitK * taps,
            (s.in_channels % kSplitK + 3) / 4 * 2};
}

// Vectors read bf16 values of pixels that lie one behind the other, or of rows of a matrix, without
// a copy.
bool reads_in_place(const SplitGemmKernels& kernels, const TileShape& s) {
    const auto is_whole = [](const ConvAxis& a) {
        return a.kernel == 1 && a.stride == 1 && a.before == 0 && a.in == a.out;
    };
    // Zeros as weights do not hide what is beyond the channels: it may be no number.
    const int whole = s.in_block == s.in_pack ? 4 : s.in_pack;
    return kReadsInPlace && kernels.vector_macs && !kernels.list && s.reduced_in &&
           s.in_pack == kSplitK / 2 && s.in_channels % whole == 0 && is_whole(s.x) &&
           is_whole(s.y) && (s.y.out == 1 || s.in_row == s.x.in * s.in_pixel);
}

// From a block of channels to the next.
ptrdiff_t block_bytes(const TileShape& s) { return s.in_block * (ptrdiff_t)sizeof(uint16_t); }

TilePlan::Unit unit_of(const SplitGemmKernels& kernels, const TileShape& shape,
                       const CostTable& costs) {
    TilePlan::Unit unit;
    unit.step_channels = kSplitK;
    unit.position_bytes = kernels.terms * kUnitRowBytes;
    unit.step_bytes = split_panel_size(kernels.b_terms(), 1) * sizeof(uint16_t);
    unit.costs = &costs;
    const Steps steps = steps_of(shape);
    // The table's vectors multiply 64 times per cycle.
    unit.step_cycles = kernels.vector_macs ? costs.split1_vectors * 64 / kernels.vector_macs *
                                                 steps.taken() / steps.count
                                           : kernels.products * costs.split_step(kernels.products);
    unit.on_vectors = kernels.vector_macs != 0;
    unit.clips = unit.on_vectors && !kernels.list;
    if (kernels.list) {
        unit.row_lanes = kernels.lanes();
        unit.word_bytes = kernels.word_bytes();
    }
    if (kernels.list && !kernels.vector_macs) {
        const double turns = (double)kUnitRows / unit.row_lanes;
        // An outer product, and the load that comes with each.
        unit.step_cycles = 2 * turns * turns * kernels.terms * kUnitRows;
    }
    unit.value_cycles = costs.split_value * kernels.terms;
    unit.finish_cycles = costs.split_finish;
    // The table's row has all columns of a panel.
    const double columns = std::min(shape.out_channels, (int)kUnitColumns);
    const double row = kernels.list ? costs.split_row_values : costs.split_row;
    unit.row_cycles = tile_group(shape) > 1 ? 0 : row * columns / kUnitColumns;
    unit.scaled_pixels = 0;
    unit.adds_parts = kernels.adds_sums;
    if (reads_in_place(kernels, shape)) {
        unit.pixel_bytes = shape.in_pixel * (ptrdiff_t)sizeof(uint16_t);
        unit.channels_bytes = 2 * block_bytes(shape);
    }
    return unit;
}

}  // namespace

const SplitGemmKernels* built_split_kernels(const Option& opt) {
    const int products = opt.use_bf16_storage ? 1 : opt.use_fp32_split;
    return host_kernel_set().split(products);
}

bool SplitPlan::is_supported(const TileShape& shape) {
    return TilePlan::is_supported(shape) && tile_group(shape) > 0;
}

double SplitPlan::cycles(const SplitGemmKernels& kernels, const TileShape& shape,
                         const CostTable& costs) {
    return TilePlan(unit_of(kernels, shape, costs), laid_out(shape), 1).cycles();
}

SplitPlan::SplitPlan(const SplitGemmKernels& kernels, const TileShape& shape, int threads)
    : kernels_(kernels),
      shape_(shape),
      plan_(unit_of(kernels, shape, host_costs()), laid_out(shape), threads) {}

bool SplitPlan::extends_to_batch() const {
    return kernels_.products == 1 && !has_windows(shape_) && !plan_.clipped();
}

// ---------------------------------------------------------------- weights

namespace {

// Values of the weights of an output channel in the order of the steps. Blocks of channels, and the
// taps inside one, whose inputs then come from the first-level cache; of windows their rows.
std::vector<int> weight_order(const TileShape& s) {
    const int w = s.x.kernel, h = s.y.kernel, taps = w * h;
    const int window = has_windows(s) ? w * kSplitPixel : 0;
    std::vector<int> order;
    for (int first = 0; first < window; first += kSplitK)
        for (int y = 0; y < h; y++)
            for (int i = first; i < first + kSplitK; i++) {
                const int x = i / kSplitPixel, c = i % kSplitPixel;
                order.push_back(x < w && c < s.in_channels ? c * taps + y * w + x : -1);
            }
    for (int c = 0; c < s.in_channels && !window; c += kSplitK)
        for (int t = 0; t < taps; t++)
            for (int i = c; i < c + kSplitK; i++)
                order.push_back(i < s.in_channels ? i * taps + t : -1);
    return order;
}

}  // namespace

size_t SplitPlan::packed_size(const SplitGemmKernels& kernels, const TileShape& shape) {
    return split_packed_size(kernels.b_terms(), shape.out_channels, steps_of(shape).count);
}

void SplitPlan::pack(const SplitGemmKernels& kernels, const float* weights, const TileShape& shape,
                     uint16_t* packed) {
    const size_t ld = (size_t)shape.in_channels * shape.x.kernel * shape.y.kernel;
    split_pack(kernels, weights, ld, weight_order(shape).data(), shape.out_channels,
               steps_of(shape).count, packed);
}

void SplitPlan::unpack(const SplitGemmKernels& kernels, const uint16_t* packed,
                       const TileShape& shape, float* weights) {
    const size_t ld = (size_t)shape.in_channels * shape.x.kernel * shape.y.kernel;
    split_unpack(kernels, packed, weight_order(shape).data(), shape.out_channels,
                 steps_of(shape).count * kSplitK, ld, weights);
}

bool SplitPlan::supports_weights(const float* weights, size_t count) {
    const float most = 0x1.fcp127f;
    size_t good = 0;
    for (size_t i = 0; i < count; i++) good += fabsf(weights[i]) < most;
    return good == count;
}

// ---------------------------------------------------------------- one run

class SplitPlan::Work final : public TilePlan::Work {
public:
    Work(const SplitPlan& plan, const FusedActivation& activation)
        : kernels(plan.kernels_),
          plan(plan.plan_),
          shape(plan.shape()),
          steps(steps_of(shape)),
          activation(activation) {}
    void begin(int tile_rows) const override {
        if (kernels.begin) kernels.begin(tile_rows);
    }
    void end() const override {
        if (kernels.end) kernels.end();
    }
    void pad(char* to, size_t positions) const override;
    void pack_a(ptrdiff_t at, int channel, size_t pixels, const float*, char* to) const override;
    const char* input() const override { return (const char*)in; }
    void multiply(const TilePlan::Task& task) const override;

    const SplitGemmKernels& kernels;
    const TilePlan& plan;
    const TileShape& shape;
    const Steps steps;
    const FusedActivation& activation;
    const void* in;
    const char* weights;
    const float* bias;
    void* out;
    const void* residual;
    ptrdiff_t residual_block;

private:
    // From a position to the next.
    ptrdiff_t position_values() const {
        return kernels.list ? kernels.word_bytes() / 2 : kernels.terms * kSplitK;
    }
    void pack_windows(ptrdiff_t at, int value, size_t count, char* to) const;
    bool chains(const SplitStore& store, size_t steps) const;
    void multiply_lists(const TilePlan::Task& task) const;
    void run_direct(SplitTile tile, SplitStore store, int rows) const;
};

void SplitPlan::Work::pad(char* to, size_t positions) const {
    if (!kernels.list) {
        memset(to, 0, positions * kernels.terms * kUnitRowBytes);
        return;
    }
    const int bytes = kernels.word_bytes();
    for (int w = 0; w < kernels.terms * kUnitRowBytes / bytes; w++)
        memset(to + w * plan.word_step(), 0, positions * bytes);
}

// From a value of theirs on, as many as a step takes.
void SplitPlan::Work::pack_windows(ptrdiff_t at, int value, size_t count, char* to) const {
    const TileShape& s = shape;
    const int tap = value / kSplitPixel, most = kSplitK / kSplitPixel;
    const ptrdiff_t row = at / s.x.out * s.in_row;
    SplitWindows t;
    t.src = s.reduced_in ? (const void*)((const uint16_t*)in + row) : (const float*)in + row;
    t.src_block = s.in_block;
    t.channels = s.in_channels;
    t.row = {std::min(most, s.x.kernel - tap), s.x.stride, s.x.before - tap, s.x.in};
    t.x = at % s.x.out;
    t.count = count;
    t.dst = (uint16_t*)to;
    t.dst_window = position_values();
    t.dst_word = plan.word_step() / 2;
    (s.reduced_in ? kernels.copy_windows : kernels.windows)(t);
}

void SplitPlan::Work::pack_a(ptrdiff_t at, int channel, size_t pixels, const float*,
                             char* to) const {
    const TileShape& s = shape;
    if (has_windows(s)) return pack_windows(at, channel, pixels, to);
    const int kernel = s.in_pack == 16 ? 3 : s.in_pack == 8 ? 2 : s.in_pack == 4 ? 1 : 0;
    SplitInput input;
    input.src = s.reduced_in ? (const void*)((const uint16_t*)in + at) : (const float*)in + at;
    input.src_pixel = s.x.stride * s.in_pixel;
    input.src_block = s.in_block;
    input.channels = std::min<int>(kSplitK, s.in_channels - channel);
    input.pixels = pixels;
    input.dst = (uint16_t*)to;
    input.dst_pixel = position_values();
    input.dst_word = plan.word_step() / 2;
    (s.reduced_in ? kernels.copy : kernels.input)[kernel](input);
}

bool SplitPlan::Work::chains(const SplitStore& store, size_t steps) const {
    return !kernels.vector_macs && store.group == 16 && store.columns == kUnitColumns &&
           (kernels.products == 1 || steps <= kSplitSection);
}

// Tiles of several panels are one list, which is full when it has so many.
enum { kListTiles = 8 };

void SplitPlan::Work::multiply_lists(const TilePlan::Task& task) const {
    enum { kSums = kUnitTiles * kUnitRows * kUnitColumns };
    alignas(64) float sums[kListTiles * kSums];
    SplitTile list[kListTiles];
    SplitStore stores[kListTiles];
    int rows[kListTiles];
    size_t count = 0;
    const auto finish = [&](size_t tiles) {
        kernels.list(list, count, tiles, stores[0].width);
        for (size_t i = 0; i < count; i++)
            finish_tile_sums(*kernels.to_c, stores[i], activation, list[i].sums, rows[i]);
        count = 0;
    };
    for (size_t panel = task.first; panel < task.last; panel++) {
        SplitStore store = tile_store(shape, panel * kUnitColumns, kUnitColumns, bias,
                                      {out, residual, residual_block}, activation);
        const TilePlan::Pairs pairs(plan, task, weights, panel);
        if (count && store.width != stores[0].width) finish(kUnitTiles);
        for (size_t i = 0; i < pairs.size(); i++) {
            const TilePlan::Pair pair = pairs[i];
            (TileOperands&)list[count] = pair.operands;
            list[count].sums = sums + count * kSums;
            list[count].full_steps = steps.full, list[count].last_pairs = steps.last_pairs;
            store.rows = pair.places;
            stores[count] = store;
            rows[count++] = pair.rows;
            if (count == kListTiles || pair.tiles < kUnitTiles) finish(pair.tiles);
        }
    }
    if (count) finish(kUnitTiles);
}

// Tiles side by side are one.
void SplitPlan::Work::run_direct(SplitTile tile, SplitStore store, int rows) const {
    if (rows > tile.tile_rows && tile.a_tile == tile.tile_rows * tile.a_row) tile.tile_rows = rows;
    for (; rows > 0; rows -= tile.tile_rows) {
        kernels.direct(tile, store);
        tile.a += tile.a_tile, tile.next = nullptr;
        store.rows += tile.tile_rows;
    }
}

void SplitPlan::Work::multiply(const TilePlan::Task& task) const {
    if (kernels.list) return multiply_lists(task);
    alignas(64) float sums[kUnitTiles * kUnitRows * kUnitColumns];
    SplitTile tile;
    tile.sums = sums;
    tile.last_pairs = steps.last_pairs;
    tile.half = reads_in_place(kernels, shape) ? block_bytes(shape) : kUnitRowBytes / 2;
    SplitEpilogue epilogue = {};
    epilogue.sums = sums;
    for (size_t panel = task.first; panel < task.last; panel++) {
        SplitStore store = tile_store(shape, panel * kUnitColumns, kUnitColumns, bias,
                                      {out, residual, residual_block}, activation);
        const bool direct = kReadsInPlace && kernels.direct && !residual && store.slope == 1.f &&
                            is_whole(store, kUnitColumns, activation);
        const TilePlan::Pairs pairs(plan, task, weights, panel);
        for (size_t i = 0; i < pairs.size(); i++) {
            const TilePlan::Pair pair = pairs[i];
            (TileOperands&)tile = pair.operands;
            // Those of full channels come first, and a tile has all or some taps of each block.
            tile.b_steps = pair.b_steps;
            tile.sums = pair.sums ? pair.sums : sums;
            tile.adds = pair.sums && task.part > 0;
            tile.full_steps = pair.b_steps ? steps.full * tile.num_steps / steps.count : steps.full;
            store.rows = pair.places;
            const bool complete = !pair.sums || plan.is_last(task);
            if (complete && pair.tiles == kUnitTiles && chains(store, tile.num_steps)) {
                kernels.chain[store.bf16](tile, epilogue);
                epilogue.store = store;
                if (store.slope == 1.f) epilogue.store.pass = activation.pass;
                epilogue.store.pass_params = activation.params;
                epilogue.rows = pair.rows;
                continue;
            }
            if (epilogue.rows) kernels.end_chain(epilogue);
            epilogue.rows = 0;
            if (direct) {
                run_direct(tile, store, pair.rows);
                continue;
            }
            kernels.tile[pair.tiles - 1][store.width > 16](tile);
            if (complete) finish_tile_sums(*kernels.to_c, store, activation, tile.sums, pair.rows);
        }
    }
    if (epilogue.rows) kernels.end_chain(epilogue);
}

bool SplitPlan::run(const void* in, const uint16_t* weights, const float* bias, void* out,
                    const void* residual, ptrdiff_t residual_block,
                    const FusedActivation& activation, float* workspace) const {
    Work work(*this, activation);
    work.in = in;
    work.weights = (const char*)weights;
    work.bias = bias;
    work.out = out;
    work.residual = residual;
    work.residual_block = residual_block;
    if (kernels_.products == 1) {
        plan_.run(work, workspace);
        return true;
    }
    // What is written over cannot be had again.
    const bool inplace = residual == out;
    const size_t block = (size_t)shape_.x.in * shape_.y.in * shape_.in_pack;
    for (int c = 0; inplace && c < shape_.in_channels / shape_.in_pack; c++)
        if (!supports_weights((const float*)in + c * shape_.in_block, block)) return false;
    plan_.run(work, workspace);
    return inplace || !has_non_finite(shape_, (const float*)out);
}

}  // namespace quoll
