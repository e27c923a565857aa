#include "layer/cpu/gemm/sliced_plan.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// The largest crest factor of an output's weights, and the largest product of these with that of
// inputs that share a scale. The products left out are then, in the root mean square, 4e-6 of those
// added up (sliced_gemm.h).
enum { kMostWeightSpread = 16, kMostSpread = 128 };

bool is_pointwise(const TileShape& s) { return s.x.kernel * s.y.kernel == 1; }

// The index of an elempack in the tables of sliced_gemm.h.
int pack_index(int pack) { return pack == 16 ? 2 : pack == 8 ? 1 : 0; }

// How many rows of the kernel have pixels that fit into a step together; 0 if a step is one pixel's
// channels.
int window_rows(const TileShape& s) {
    if (s.in_pack != 1 || !has_step_windows(s, kSlicedWindowPixel, kSlicedK)) return 0;
    const int rows = kSlicedK / (s.x.kernel * kSlicedWindowPixel);
    return s.y.dilation == 1 ? std::min(rows, s.y.kernel) : 1;
}

// The input as the TilePlan sees it: windows of that many rows. The first window is the one whose
// last row is the input's first.
TileShape laid_out(const TileShape& s) {
    const int rows = window_rows(s);
    if (!rows) return s;
    TileShape windows = shape_of_windows(s, kSlicedWindowPixel);
    windows.in_channels = windows.in_pack = rows * s.x.kernel * kSlicedWindowPixel;
    windows.y.in += rows - 1;
    windows.y.before -= rows - 1;
    windows.y.kernel = (s.y.kernel + rows - 1) / rows;
    windows.y.dilation *= rows;
    return windows;
}

size_t steps_of(const TileShape& s) {
    if (const int rows = window_rows(s)) return (size_t)(s.y.kernel + rows - 1) / rows;
    return (size_t)((s.in_channels + kSlicedK - 1) / kSlicedK) * s.x.kernel * s.y.kernel;
}
size_t columns_of(const TileShape& s) {
    return (size_t)(s.out_channels + kSlicedColumns - 1) / kSlicedColumns * kSlicedColumns;
}
size_t panel_bytes(const TileShape& s) {
    return steps_of(s) * kSlicedTerms * kSlicedK * kSlicedColumns;
}

TilePlan::Unit unit_of(const TileShape& shape, const CostTable& costs) {
    TilePlan::Unit unit;
    unit.step_channels = kSlicedK;
    unit.position_bytes = kSlicedTerms * kSlicedK;
    unit.step_bytes = kSlicedTerms * kSlicedK * kUnitColumns;
    unit.costs = &costs;
    unit.step_cycles = 6 * costs.sliced_step;
    unit.value_cycles = is_pointwise(shape) || shape.in_pack < 16 ? costs.sliced_value_pointwise
                                                                  : costs.sliced_value;
    if (window_rows(shape)) unit.value_cycles = costs.sliced_value_window;
    unit.finish_cycles = costs.sliced_finish;
    unit.row_cycles = tile_group(shape) == 16 ? 0 : costs.sliced_row;
    // As many pixels as are still in the first-level cache when they are read again.
    unit.scaled_pixels = !is_pointwise(shape) ? 0 : shape.in_channels <= 256 ? 24 : 8;
    return unit;
}

}  // namespace

const SlicedGemmKernels* built_sliced_kernels(const Option& opt) {
    const bool asked = opt.use_fp32_split == 6 || opt.use_fp32_split == 3;
    return asked && !opt.use_bf16_storage ? host_kernel_set().sliced : nullptr;
}

bool SlicedPlan::is_supported(const TileShape& s) {
    const double k = (double)s.in_channels * s.x.kernel * s.y.kernel;
    return TilePlan::is_supported(s) && tile_group(s) > 0 && (s.in_pack >= 4 || window_rows(s)) &&
           !s.reduced_in && !s.reduced_out && k <= kSlicedMaxK;
}

double SlicedPlan::cycles(const TileShape& shape, const CostTable& costs) {
    double scan = 0;
    if (!is_pointwise(shape))
        scan = costs.sliced_scan * shape.x.in * shape.y.in * shape.in_channels;
    return TilePlan(unit_of(shape, costs), laid_out(shape), 1).cycles() + scan;
}

SlicedPlan::SlicedPlan(const SlicedGemmKernels& kernels, const TileShape& shape, int threads)
    : kernels_(kernels),
      shape_(shape),
      window_rows_(window_rows(shape)),
      plan_(unit_of(shape, host_costs()), laid_out(shape), threads) {}

bool SlicedPlan::has_pixel_scales() const { return is_pointwise(shape_); }

// ---------------------------------------------------------------- weights

namespace {

// Of a step of windows.
void add_window_order(const TileShape& s, int first_row, std::vector<int>* order) {
    const int taps = s.x.kernel * s.y.kernel, width = s.x.kernel * kSlicedWindowPixel;
    for (int i = 0; i < kSlicedK; i++) {
        const int byte = slice_position(i), row = byte / width, y = first_row + row;
        const int x = byte % width / kSlicedWindowPixel, c = byte % kSlicedWindowPixel;
        const bool there = row < window_rows(s) && y < s.y.kernel && c < s.in_channels;
        order->push_back(there ? c * taps + y * s.x.kernel + x : -1);
    }
}

// The weights of an output channel in the order of the steps: blocks of channels, and the taps
// inside one block, whose inputs then come from the first-level cache.
std::vector<int> weight_order(const TileShape& s) {
    const int taps = s.x.kernel * s.y.kernel, rows = window_rows(s);
    std::vector<int> order;
    order.reserve(steps_of(s) * kSlicedK);
    for (int y = 0; rows && y < s.y.kernel; y += rows) add_window_order(s, y, &order);
    if (rows) return order;
    for (int c = 0; c < s.in_channels; c += kSlicedK)
        for (int t = 0; t < taps; t++)
            for (int i = c; i < c + kSlicedK; i++)
                order.push_back(i < s.in_channels ? i * taps + t : -1);
    return order;
}

bool has_low_crest(const CrestFactor& of_weights) {
    return of_weights.finite && of_weights.ratio() <= kMostWeightSpread;
}

}  // namespace

size_t SlicedPlan::packed_size(const TileShape& s) {
    return columns_of(s) * (1 + panel_bytes(s) / kSlicedColumns / sizeof(float)) + 16;
}

// Packs the panels and the columns' scales, and finds the weights' crest factor.
bool SlicedPlan::pack(const SlicedGemmKernels& kernels, const float* weights, const TileShape& s,
                      float* packed, int threads) {
    const std::vector<int> order = weight_order(s);
    const size_t panels = columns_of(s) / kSlicedColumns, bytes = panel_bytes(s);
    float* const scales = packed + panels * bytes / sizeof(float);
    std::vector<CrestFactor> crests(panels);
    run_tasks((int64_t)panels, threads, [&](int64_t p, int) {
        const size_t n = (size_t)p * kSlicedColumns;
        SlicedPanel panel;
        panel.ld = (size_t)s.in_channels * s.x.kernel * s.y.kernel;
        panel.order = order.data();
        panel.steps = steps_of(s);
        panel.src = weights + n * panel.ld;
        panel.columns = (int)std::min<size_t>(kSlicedColumns, s.out_channels - n);
        panel.dst = (int8_t*)packed + p * bytes;
        panel.scales = scales + n;
        crests[p] = kernels.pack(panel);
    });
    CrestFactor widest;
    for (const CrestFactor& crest : crests) widest.widen(crest);
    scales[columns_of(s)] = (float)widest.ratio();
    return has_low_crest(widest);
}

bool SlicedPlan::supports_weights(const SlicedGemmKernels& kernels, const float* weights,
                                  const TileShape& s) {
    const size_t k = (size_t)s.in_channels * s.x.kernel * s.y.kernel;
    for (int n = 0; n < s.out_channels; n++)
        if (!has_low_crest(kernels.crest(weights + n * k, k, INFINITY))) return false;
    return true;
}

void SlicedPlan::unpack(const float* packed, const TileShape& s, float* weights) {
    const std::vector<int> order = weight_order(s);
    const size_t k = (size_t)s.in_channels * s.x.kernel * s.y.kernel;
    const float* const scales = packed + columns_of(s) / kSlicedColumns * panel_bytes(s) / 4;
    const auto weight = [&](const int8_t* panel, size_t i, size_t column) {
        const size_t place = (size_t)slice_position((int)(i % kSlicedK));
        const int8_t* slice = panel + i / kSlicedK * kSlicedTerms * kSlicedK * kSlicedColumns +
                              place / 4 * 4 * kSlicedColumns + column * 4 + place % 4;
        const size_t term = kSlicedK * kSlicedColumns;
        return 65536 * slice[0] + 256 * slice[term] + slice[2 * term];
    };
    for (size_t n = 0; n < (size_t)s.out_channels; n++) {
        const int8_t* panel = (const int8_t*)packed + n / kSlicedColumns * panel_bytes(s);
        const float scale = scales[n] * 0x1p-16f;
        for (size_t i = 0; i < order.size(); i++)
            if (order[i] >= 0)
                weights[n * k + order[i]] = scale * (float)weight(panel, i, n % kSlicedColumns);
    }
}

// ---------------------------------------------------------------- one run

// Selects the values whose magnitude is above `least` and at most `most`; or all values.
struct SlicedPart {
    bool all;
    float least, most;
    float scale;  // of larger kernels than 1x1
};

class SlicedPlan::Work final : public TilePlan::Work {
public:
    Work(const SlicedPlan& plan, const float* in, const float* weights);
    void begin(int tile_rows) const override { own.kernels_.begin(tile_rows); }
    void end() const override { own.kernels_.end(); }
    void pad(char* to, size_t positions) const override {
        memset(to, 0, positions * kSlicedTerms * kSlicedK);
    }
    void scale(ptrdiff_t at, size_t pixels, float* scales) const override;
    void pack_a(ptrdiff_t at, int channel, size_t pixels, const float* scales,
                char* to) const override;
    void multiply(const TilePlan::Task& task) const override;

    const SlicedPlan& own;
    const TileShape& shape;
    SlicedPart part;
    const float *const in, *const weights, *const column_scales;
    const float* bias;  // or null
    TileTarget target;
    FusedActivation activation;

private:
    struct Chain;
    void pack_windows(ptrdiff_t y, ptrdiff_t x, size_t count, char* to) const;
};

SlicedPlan::Work::Work(const SlicedPlan& plan, const float* input, const float* packed)
    : own(plan),
      shape(plan.shape()),
      part{true, 0.f, INFINITY, 0.f},
      in(input),
      weights(packed),
      column_scales(packed +
                    columns_of(shape) / kSlicedColumns * panel_bytes(shape) / sizeof(float)) {}

void SlicedPlan::Work::scale(ptrdiff_t at, size_t pixels, float* scales) const {
    own.kernels_.peaks[pack_index(shape.in_pack)]({in + at, shape.x.stride * shape.in_pixel,
                                                   shape.in_block, shape.in_channels, pixels,
                                                   scales});
}

void SlicedPlan::Work::pack_windows(ptrdiff_t y, ptrdiff_t x, size_t count, char* to) const {
    SlicedWindows t;
    t.num_rows = own.window_rows_;
    for (int i = 0; i < t.num_rows; i++) {
        const ptrdiff_t row = y - (t.num_rows - 1) + i;
        t.rows[i] = row >= 0 && row < shape.y.in ? in + row * shape.in_row : nullptr;
    }
    t.src_block = shape.in_block;
    t.channels = shape.in_channels;
    t.row = {shape.x.kernel, shape.x.stride, shape.x.before, shape.x.in};
    t.x = x;
    t.count = count;
    t.scale = part.scale;
    t.least = part.all ? -1.f : part.least;
    t.most = part.all ? INFINITY : part.most;
    t.dst = (int8_t*)to;
    own.kernels_.windows(t);
}

void SlicedPlan::Work::pack_a(ptrdiff_t at, int channel, size_t pixels, const float* scales,
                              char* to) const {
    if (own.window_rows_) return pack_windows(at / shape.x.out, at % shape.x.out, pixels, to);
    const bool pixel_scales = own.has_pixel_scales();
    SlicedInput input;
    input.src = in + at;
    input.src_pixel = shape.x.stride * shape.in_pixel;
    input.src_block = shape.in_block;
    input.channels = std::min<int>(kSlicedK, shape.in_channels - channel);
    input.pixels = pixels;
    input.scales = pixel_scales ? scales : &part.scale;
    input.scale_step = pixel_scales;
    input.least = part.least, input.most = part.most;
    input.dst = (int8_t*)to;
    input.dst_pixel = kSlicedTerms * kSlicedK;
    own.kernels_.input[!part.all][pack_index(shape.in_pack)](input);
}

// Computes the sums of one pair of tiles after another, each stored while the next are computed. If
// C takes no rows of 16 columns, they go to a buffer first.
struct SlicedPlan::Work::Chain {
    alignas(64) int32_t sums[kUnitTiles * kSlicedTerms * kUnitRows * kSlicedColumns];
    alignas(64) float results[kUnitTiles * kUnitRows * kSlicedColumns];
    float row_scales[kUnitTiles * kUnitRows];
    int32_t rows[kUnitTiles * kUnitRows];  // of results
    const Work& work;
    const char* const a;  // the block's
    SlicedEpilogue epilogue;
    SplitStore store;  // of the rest

    Chain(const Work& w, const char* block) : work(w), a(block), epilogue(), store() {
        epilogue.sums = sums;
        epilogue.row_scales = row_scales;
        std::fill_n(row_scales, kUnitTiles * kUnitRows, w.part.scale);
        for (int i = 0; i < kUnitTiles * kUnitRows; i++) rows[i] = i * kSlicedColumns;
    }
    void take_scales(const TileOperands& t, int tiles) {
        const float* scales = work.own.plan_.scales(a) + (t.a - a) / t.a_row;
        for (int i = 0; i < tiles; i++, scales += t.a_tile / t.a_row)
            std::copy_n(scales, t.tile_rows, row_scales + i * t.tile_rows);
    }
    // Sets what the next sums belong to.
    void set_rest(const TilePlan::Pair& pair, const SplitStore& next, size_t n0) {
        store = next;
        store.rows = pair.places;
        epilogue.store = store;
        if (!is_whole(store, kSlicedColumns, work.activation)) {
            epilogue.store = SplitStore();
            epilogue.store.c = results;
            epilogue.store.rows = rows;
            epilogue.store.low = -INFINITY, epilogue.store.high = INFINITY;
            epilogue.store.slope = 1.f;
        }
        epilogue.column_scales = work.column_scales + n0;
        epilogue.tiles = pair.tiles;
        epilogue.tile_rows = pair.operands.tile_rows;
        if (work.own.has_pixel_scales()) take_scales(pair.operands, pair.tiles);
    }
    // To be called after a kernel has stored the epilogue's sums.
    void finish_rest() {
        if (epilogue.tiles && epilogue.store.c == results)
            finish_tile_sums(*work.own.kernels_.to_c, store, work.activation, results,
                             epilogue.tiles * epilogue.tile_rows);
    }
    void add(const TilePlan::Pair& pair, const SplitStore& next, size_t n0) {
        work.own.kernels_.chain[pair.tiles - 1](pair.operands, epilogue);
        finish_rest();
        set_rest(pair, next, n0);
    }
    void end() {
        if (epilogue.tiles) work.own.kernels_.end_chain(epilogue);
        finish_rest();
    }
};

// A pair of tiles is multiplied by both halves of a panel while its rows are in the first-level
// cache.
void SlicedPlan::Work::multiply(const TilePlan::Task& task) const {
    Chain chain(*this, task.a);
    for (size_t panel = task.first; panel < task.last; panel++) {
        const size_t n0 = panel * kUnitColumns, n1 = n0 + kSlicedColumns;
        const bool full = n1 < (size_t)shape.out_channels;
        const SplitStore low = tile_store(shape, n0, kSlicedColumns, bias, target, activation);
        SplitStore high = {};
        if (full) high = tile_store(shape, n1, kSlicedColumns, bias, target, activation);
        const TilePlan::Pairs pairs(own.plan_, task, (const char*)weights, panel);
        for (size_t i = 0; i < pairs.size(); i++) {
            TilePlan::Pair pair = pairs[i];
            if (pair.operands.next_in_order && full) pair.operands.next_bytes /= 2;
            chain.add(pair, low, n0);
            if (!full) continue;
            pair.operands.b += panel_bytes(shape);
            if (pair.operands.next_in_order && pair.operands.next)
                pair.operands.next += panel_bytes(shape);
            else
                pair.operands.next = nullptr;
            chain.add(pair, high, n1);
        }
    }
    chain.end();
}

bool SlicedPlan::is_row() const {
    const ConvAxis &x = shape_.x, &y = shape_.y;
    return is_pointwise(shape_) && x.out * y.out == 1 && x.before == 0 && y.before == 0;
}

// The workspace has room for a pixel's slices.
bool SlicedPlan::run_row(const Work& work, float* workspace) const {
    int8_t* slices = (int8_t*)workspace;
    float scale;
    work.scale(0, 1, &scale);
    if (isnan(scale)) return false;
    const size_t steps = steps_of(shape_);
    for (size_t s = 0; s < steps; s++) {
        const int channel = (int)s * kSlicedK;
        work.pack_a(channel / shape_.in_pack * shape_.in_block, channel, 1, &scale,
                    (char*)slices + s * kSlicedTerms * kSlicedK);
    }
    const size_t panels = columns_of(shape_) / kSlicedColumns;
    const int64_t tasks = (int64_t)((panels + kSlicedRowPanels - 1) / kSlicedRowPanels);
    run_tasks(tasks, threads(), [&](int64_t t, int) {
        const size_t first = (size_t)t * kSlicedRowPanels;
        alignas(64) float results[kSlicedRowPanels * kSlicedColumns];
        SlicedRow row = {slices,
                         steps,
                         (const int8_t*)work.weights + first * panel_bytes(shape_),
                         (int)std::min<size_t>(kSlicedRowPanels, panels - first),
                         scale,
                         work.column_scales + first * kSlicedColumns,
                         results};
        kernels_.row(row);
        for (int p = 0; p < row.panels; p++) {
            const int32_t place = 0;
            SplitStore store = tile_store(shape_, (first + p) * kSlicedColumns, kSlicedColumns,
                                          work.bias, work.target, work.activation);
            store.rows = &place;
            store.slope = 1.f;  // the pass takes it
            finish_tile_sums(*kernels_.to_c, store, work.activation, results + p * kSlicedColumns,
                             1);
        }
    });
    return true;
}

// In as many tasks as the shape gives, each adding its values in order: sums must not depend on the
// number of threads.
CrestFactor SlicedPlan::crest(const float* in, float most) const {
    enum { kMostTasks = 64, kValues = 16384 };
    const TileShape& s = shape_;
    const size_t block = (size_t)s.x.in * s.y.in * s.in_pack, blocks = s.in_channels / s.in_pack;
    const size_t partitions = std::min<size_t>(kMostTasks, (block + kValues - 1) / kValues);
    const size_t tasks = std::min<size_t>(kMostTasks, blocks * partitions);
    CrestFactor parts[kMostTasks];
    const auto add = [&](int64_t task, int) {
        const size_t first = partition_begin(blocks * partitions, tasks, task);
        const size_t count = partition_length(blocks * partitions, tasks, task);
        for (size_t i = first; i < first + count; i++) {
            const float* values = in + (ptrdiff_t)(i / partitions) * s.in_block;
            parts[task].add(
                kernels_.crest(values + partition_begin(block, partitions, i % partitions),
                               partition_length(block, partitions, i % partitions), most));
        }
    };
    // A region of threads takes as long as some ten thousand values.
    run_tasks((int64_t)tasks, tasks >= 8 ? threads() : 1, add);
    CrestFactor all;
    for (size_t i = 0; i < tasks; i++) all.add(parts[i]);
    return all;
}

bool SlicedPlan::run(const float* in, const float* weights, const float* bias, float* out,
                     const float* residual, ptrdiff_t residual_block,
                     const FusedActivation& activation, float* workspace) const {
    Work work(*this, in, weights);
    work.bias = bias;
    work.target = {out, residual, residual_block};
    work.activation = activation;
    if (is_row()) return run_row(work, workspace);
    if (has_pixel_scales()) {
        // Values that have been overwritten cannot be recomputed.
        if (residual == out && !crest(in, INFINITY).finite) return false;
        plan_.run(work, workspace);
        return residual == out || !has_non_finite(shape_, out);
    }
    const CrestFactor all = crest(in, INFINITY);
    if (!all.finite) return false;
    const double ratio = all.ratio();
    work.part.scale = slice_scale(all.peak);
    if (ratio * work.column_scales[columns_of(shape_)] > kMostSpread) {
        // Both parts have about the square root of the crest factor.
        const float between = (float)(all.peak / sqrt(ratio));
        work.part = {false, 0.f, between, slice_scale(crest(in, between).peak)};
        work.activation = FusedActivation();
        plan_.run(work, workspace);
        work.part = {false, between, INFINITY, slice_scale(all.peak)};
        work.bias = nullptr;
        work.target = {out, out, shape_.out_block};
        work.activation = activation;
    }
    plan_.run(work, workspace);
    return true;
}

}  // namespace quoll
