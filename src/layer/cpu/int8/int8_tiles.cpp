#include "layer/cpu/int8/int8_tiles.h"

#include <limits.h>
#include <string.h>

#include <algorithm>
#include <optional>

#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/gemm/split_gemm.h"

namespace quoll {

namespace {

// Bytes that are copied of a row of a window, of which `row` count.
int copied_bytes(int row) {
    return row <= 16 ? 16 : row <= 24 ? 24 : row <= 32 ? 32 : kUnitRowBytes;
}

// Rows of windows, from `from` on every `step` bytes, each to its position.
template <int bytes>
void copy_windows(const char* from, size_t step, size_t count, char* to) {
    for (size_t i = 0; i < count; i++) memcpy(to + i * kUnitRowBytes, from + i * step, bytes);
}

// Words, from `from` on every `step` bytes, side by side.
void copy_words(const char* from, size_t step, size_t count, char* to) {
    if (step == 4) {
        memcpy(to, from, 4 * count);
    } else if (step == 8) {
        size_t i = 0;
        for (; i + 2 <= count; i += 2) {
            uint64_t words[2];
            memcpy(words, from + 8 * i, 16);
            words[0] = (words[0] & 0xffffffff) | words[1] << 32;
            memcpy(to + 4 * i, words, 8);
        }
        if (i < count) memcpy(to + 4 * i, from + 8 * i, 4);
    } else {
        for (size_t i = 0; i < count; i++) memcpy(to + 4 * i, from + step * i, 4);
    }
}

typedef void (*CopyWindows)(const char* from, size_t step, size_t count, char* to);
CopyWindows copy_of(int row) {
    switch (copied_bytes(row)) {
        case 16:
            return &copy_windows<16>;
        case 24:
            return &copy_windows<24>;
        case 32:
            return &copy_windows<32>;
        default:
            return &copy_windows<kUnitRowBytes>;
    }
}

// The plan's input: windows of `rows` rows. Window y begins at the input's row y + 1 - rows, so
// that those which begin above the input are some of it.
TileShape windows_of(const TileShape& shape, int pixel, int rows) {
    TileShape windows = shape_of_windows(shape, pixel);
    windows.in_channels = windows.in_pack = rows * shape.x.kernel * pixel;
    ConvAxis& y = windows.y;
    if (rows == 1) return windows;
    y.kernel = (y.kernel + rows - 1) / rows;
    y.dilation = rows;
    y.in += rows - 1, y.before -= rows - 1;
    return windows;
}

// Cycles of laying out a value, and of a vector of 16 sums on its way to C.
double value_cycles(const TileShape& s) {
    return s.reduced_in ? host_costs().int8_value_s8 : host_costs().int8_value_f32;
}
double vector_cycles(const TileShape& s) {
    return s.reduced_out ? host_costs().int8_vector_s8 : host_costs().int8_vector_f32;
}

const Int8Kernels& vector_kernels() {
    const KernelSet& set = host_kernel_set();
    return set.int8_pairs ? *set.int8_pairs : *set.int8;
}

// Kernels of lists: so many rows and columns at a time. Of a pair of k-groups of two vectors each
// eight outer products, as many loads, and half as many to take pairs apart.
void set_lanes(int lanes, int step_channels, TilePlan::Unit* unit) {
    const double turns = (double)kUnitRows / lanes;
    unit->row_lanes = lanes;
    unit->position_bytes = step_channels;
    unit->step_cycles = 2.5 * turns * turns * step_channels / 4;
    // What becomes of sums are vectors of four.
    const double vectors = (double)kUnitRows / vector_kernels().lanes;
    unit->finish_cycles += (vectors - 1) * (unit->finish_cycles - unit->costs->int8_finish);
}

int round_up(int x, int unit) { return (x + unit - 1) / unit * unit; }

// Steps of a run of so many values.
int run_steps(int values) { return (values + kUnitRowBytes - 1) / kUnitRowBytes; }

// Pairs of k-groups are whole.
int step_bytes(const TileShape& s, int channels, int rows, int run) {
    if (run) return run / run_steps(run);
    if (rows == 0) return channels;
    return rows * channels * (kInt8Lists ? (s.x.kernel + 1) / 2 * 2 : s.x.kernel);
}

// A step of so many bytes takes step_channels of a position, or a part of a run.
TilePlan::Unit unit_of(const Int8UnitKernels& kernels, const TileShape& shape, int step,
                       int step_channels, int run) {
    TilePlan::Unit unit;
    unit.step_channels = step_channels;
    unit.position_bytes = kUnitRowBytes;
    unit.step_bytes = (size_t)step * kUnitColumns;
    if (run) {
        unit.position_bytes = step_channels;
        unit.row_steps = run_steps(run);
        unit.row_step_bytes = step;
    }
    unit.costs = &host_costs();
    // The loads and multiplications are those of one bf16 product and take the same time.
    unit.step_cycles = unit.costs->split1_step * split_slowness();
    unit.value_cycles = value_cycles(shape);
    unit.finish_cycles = unit.costs->int8_finish + kUnitRows * vector_cycles(shape);
    unit.row_cycles = 0;
    unit.scaled_pixels = 0;
    if (kInt8Lists) set_lanes(kernels.lanes(), step_channels, &unit);
    return unit;
}

// Rows of windows that fit in a step.
int rows_in_step(const TileShape& s, int step_channels) {
    if (s.y.dilation != 1) return 1;
    const int row = s.x.kernel * step_channels;
    const int most = (kUnitRowBytes - copied_bytes(row)) / row + 1;
    const int steps = (s.y.kernel + most - 1) / most;
    return (s.y.kernel + steps - 1) / steps;
}

}  // namespace

const Int8UnitKernels* usable_int8_units() {
    const Int8UnitKernels* const units = host_kernel_set().int8_units;
    return units && kInt8Lists && !units->lanes() ? nullptr : units;
}

int Int8TilePlan::window_rows(const TileShape& s, int step_channels) {
    if (kInt8Lists && step_channels % 8 == 0) return 0;
    if (!has_step_windows(s, step_channels, kUnitRowBytes)) return 0;
    if (kInt8Lists) return 1;
    const int rows = rows_in_step(s, step_channels);
    return rows == 1 && run_values(s, step_channels) ? 0 : rows;
}

int Int8TilePlan::run_values(const TileShape& s, int step_channels) {
    if (kInt8Lists || s.x.kernel == 1 || s.x.stride != 1 || s.x.dilation != 1) return 0;
    const int row = s.x.kernel * step_channels, steps = run_steps(row);
    if (steps >= s.x.kernel && step_channels <= kUnitRowBytes) return 0;
    if (has_step_windows(s, step_channels, kUnitRowBytes) && rows_in_step(s, step_channels) > 1)
        return 0;
    return steps * round_up((row + steps - 1) / steps, 4);
}

int Int8TilePlan::run_channels(const TileShape& s, int unit) {
    int best = 0, least = INT_MAX;
    const int most = (s.in_channels + kUnitRowBytes - 1) / kUnitRowBytes;
    for (int blocks = (most + 3) / 4; blocks <= most; blocks++) {
        const int channels = round_up((s.in_channels + blocks - 1) / blocks, unit);
        if (!run_values(s, channels)) continue;
        const int all = (s.in_channels + channels - 1) / channels;
        const int steps = all * run_steps(s.x.kernel * channels);
        if (steps <= least) best = channels, least = steps;
    }
    return least < most * s.x.kernel ? best : 0;
}

Int8TilePlan::Int8TilePlan(const Int8UnitKernels& kernels, const TileShape& shape,
                           int step_channels, int threads)
    : kernels_(kernels),
      shape_(shape),
      channels_(step_channels),
      rows_(window_rows(shape, step_channels)),
      run_(run_values(shape, step_channels)),
      step_(step_bytes(shape, step_channels, rows_, run_)),
      position_(run_ ? channels_ : kUnitRowBytes),
      plan_(unit_of(kernels, shape, step_, run_ ? channels_ : step_, run_),
            rows_ ? windows_of(shape, channels_, rows_) : shape, threads) {}

bool Int8TilePlan::beats_vectors(size_t line, size_t lines) const {
    const TileShape& s = shape();
    const Int8Kernels& vectors = vector_kernels();
    const size_t partitions = (line + vectors.max_rows - 1) / vectors.max_rows;
    const double rows = (double)line / partitions;
    const size_t blocks = (s.in_channels + channels_ - 1) / channels_;
    const double k_groups = (double)blocks * channels_ / 4 * s.x.kernel * s.y.kernel;
    const double halves = (s.out_channels + vectors.lanes - 1) / vectors.lanes;
    // A row's dot products of four take half a cycle each (two ports), but a chain of them five
    // cycles a k-group; of pairs one instruction multiplies two rows, and longer vectors of SVE
    // more.
    const double at_once = vectors.pairs ? vectors.vectors : 1;
    const double products =
        (double)lines * partitions * k_groups * halves / 2 * std::max(rows, 5.) / at_once;
    const double others = (double)s.x.in * s.y.in * s.in_channels * value_cycles(s) +
                          (double)line * lines * halves * vector_cycles(s);
    const double bytes = k_groups * 4 * halves * vectors.lanes;
    const double time =
        (products + others) / std::max(1, threads()) + plan_.weight_cycles(bytes, threads());
    // Sums are exact by both algorithms, so that threads may count: the slowest of them does.
    return plan_.cycles() < time * (threads() > 1 ? .8 : .95);
}

// ---------------------------------------------------------------- one run

class Int8TilePlan::Work final : public TilePlan::Work {
public:
    Work(const Int8TilePlan& plan, const Int8Result& result) : own(plan), result(result) {}
    void begin(int tile_rows) const override {
        if (own.kernels_.begin) own.kernels_.begin(tile_rows, own.step_);
    }
    void end() const override {
        if (own.kernels_.end) own.kernels_.end();
    }
    void pad(char* to, size_t positions) const override {
        const int value = pad_value + kernels().offset;
        if (kInt8Lists)
            fill_words(to, 0, positions, value);
        else
            memset(to, value, positions * own.position_);
    }
    void pack_a(ptrdiff_t at, int channel, size_t pixels, const float*, char* to) const override {
        if (own.rows_)
            pack_windows(at / own.shape_.x.out, at % own.shape_.x.out, pixels, to);
        else if (kInt8Lists)
            pack_words(at, channel, pixels, to);
        else
            pack_pixels(at, channel, pixels, own.shape_.x.stride, to, own.position_);
    }
    void multiply(const TilePlan::Task& task) const override;

    const Int8TilePlan& own;
    const Int8Result& result;
    const void* in;
    float input_scale;
    int pad_value;

private:
    struct Epilogue;
    void finish(Int8Panel* panel, const int32_t* places, int rows, int32_t* sums) const;
    void pack_pixels(ptrdiff_t at, int channel, size_t pixels, ptrdiff_t stride, char* to,
                     size_t to_pixel) const;
    void pack_windows(ptrdiff_t y, ptrdiff_t x, size_t count, char* to) const;
    void fill_words(char* to, int first, size_t pixels, int value) const;
    void pack_words(ptrdiff_t at, int channel, size_t pixels, char* to) const;
    void set_columns(Int8UnitTile* tile, size_t width) const;
    void multiply_lists(const TilePlan::Task& task) const;
    const Int8Kernels& kernels() const { return result.weights->kernels(); }
};

// Pixels `stride` apart, from channel `channel` on.
void Int8TilePlan::Work::pack_pixels(ptrdiff_t at, int channel, size_t pixels, ptrdiff_t stride,
                                     char* to, size_t to_pixel) const {
    const TileShape& s = own.shape_;
    const int pack = s.in_pack == 16 ? 3 : s.in_pack == 8 ? 2 : s.in_pack == 4 ? 1 : 0;
    Int8Input input = {};
    input.src = s.reduced_in ? (const void*)((const int8_t*)in + at) : (const float*)in + at;
    input.src_pixel = stride * s.in_pixel;
    input.src_block = s.in_block;
    input.channels = std::min(own.channels_, s.in_channels - channel);
    input.pixels = pixels;
    input.scale = input_scale;
    input.dst = to;
    input.dst_pixel = (ptrdiff_t)to_pixel;
    input.dst_pack = (int)to_pixel;
    (s.reduced_in ? kernels().input_s8 : kernels().input_f32)[pack](input);
}

// Windows x to x + count of the plan's row y, by way of the pixels that they cover.
void Int8TilePlan::Work::pack_windows(ptrdiff_t y, ptrdiff_t x, size_t count, char* to) const {
    enum { kRoom = 4096 };
    char line[kRoom + kUnitRowBytes];
    const TileShape& s = own.shape_;
    const size_t pixel = own.channels_, step = s.x.stride * pixel;
    const int padding = pad_value + kernels().offset, row_bytes = s.x.kernel * own.channels_;
    const CopyWindows copy = copy_of(row_bytes);
    const ptrdiff_t word = own.plan_.word_step();
    const WindowRow row = {s.x.kernel, s.x.stride, s.x.before, s.x.in};
    for_windows(row, x, count, kRoom / pixel, [&](size_t done, const WindowRun& run) {
        for (int r = 0; r < own.rows_; r++) {
            const ptrdiff_t in_y = y + r - (own.rows_ - 1);
            const bool inside = in_y >= 0 && in_y < s.y.in;
            const ptrdiff_t left = inside ? run.left : 0, right = inside ? run.right : 0;
            memset(line, padding, left * pixel);
            memset(line + right * pixel, padding, (run.pixels - right) * pixel);
            if (left < right)
                pack_pixels(in_y * s.in_row + (run.first + left) * s.in_pixel, 0, right - left, 1,
                            line + left * pixel, pixel);
            // What is copied beyond a row is that of the next, or does not count.
            if (kInt8Lists)
                for (int i = 0; i < own.step_ / 4; i++)
                    copy_words(line + 4 * i, step, run.windows, to + i * word + done * 4);
            else
                copy(line, step, run.windows, to + done * kUnitRowBytes + r * row_bytes);
        }
    });
}

// Words of some positions from the step's word `first` on.
void Int8TilePlan::Work::fill_words(char* to, int first, size_t pixels, int value) const {
    for (int w = first; w < own.step_ / 4; w++)
        memset(to + w * own.plan_.word_step(), value, pixels * 4);
}

// Pixels from channel `channel` on, words side by side.
void Int8TilePlan::Work::pack_words(ptrdiff_t at, int channel, size_t pixels, char* to) const {
    const TileShape& s = own.shape_;
    const ptrdiff_t word = own.plan_.word_step();
    const int channels = std::min(own.step_, s.in_channels - channel), words = (channels + 3) / 4;
    fill_words(to, words, pixels, 0);
    if (s.reduced_in && s.in_pack == 4 && s.x.stride * s.in_pixel == 4) {
        for (int w = 0; w < words; w++)
            memcpy(to + w * word, (const int8_t*)in + at + w * s.in_block, pixels * 4);
        return;
    }
    Int8Input input = {};
    input.src = s.reduced_in ? (const void*)((const int8_t*)in + at) : (const float*)in + at;
    input.src_pixel = s.x.stride * s.in_pixel;
    input.src_block = s.in_block;
    input.channels = channels;
    input.pixels = pixels;
    input.scale = input_scale;
    input.dst = to;
    input.dst_pixel = input.dst_pack = 4;
    input.dst_block = word;
    (s.reduced_in ? kernels().input_s8 : kernels().input_f32)[s.in_pack == 4](input);
}

// Rows whose places are a pixel apart are stored together.
void Int8TilePlan::Work::finish(Int8Panel* panel, const int32_t* places, int rows,
                                int32_t* sums) const {
    const ptrdiff_t pixel = own.shape().out_pixel;
    for (int m = 0, end; m < rows; m = end) {
        end = m + 1;
        if (places[m] < 0) continue;
        while (end < rows && places[end] == places[end - 1] + pixel) end++;
        panel->finish({0, places[m], 0, pixel, end - m, 0, 1}, sums + m * panel->width());
    }
}

struct Int8TilePlan::Work::Epilogue : Int8Epilogue {
    const Work* work;
    Int8Panel* panel;
    const int32_t* places;

    static void finish_all(const Int8Epilogue& epilogue) {
        const Epilogue& r = static_cast<const Epilogue&>(epilogue);
        r.work->finish(r.panel, r.places, r.rows, r.sums);
    }
};

// Of the `width` columns of a panel of the plan.
void Int8TilePlan::Work::set_columns(Int8UnitTile* tile, size_t width) const {
    const size_t panel = result.weights->panel(), k = 4 * result.weights->k_groups();
    tile->b_pair = (ptrdiff_t)panel * 8;
    for (size_t n = 0; n < kUnitColumns; n += 8)
        tile->b_columns[n / 8] = n < width ? (ptrdiff_t)(n / panel * panel * k + n % panel * 8) : 0;
}

// Tiles of several panels are one list, which is full when it has so many.
enum { kListTiles = 8 };

void Int8TilePlan::Work::multiply_lists(const TilePlan::Task& task) const {
    enum { kSums = kUnitTiles * kUnitRows * kUnitColumns };
    alignas(64) int32_t sums[kListTiles * kSums];
    Int8UnitTile list[kListTiles];
    struct Rows {
        Int8Panel* panel;
        const int32_t* places;
        int count;
    } rows[kListTiles];
    std::optional<Int8Panel> panels[kListTiles];
    size_t count = 0;
    const auto finish = [&](int tiles) {
        if (count) own.kernels_.list(list, count, tiles, rows[0].panel->width());
        for (size_t i = 0; i < count; i++)
            this->finish(rows[i].panel, rows[i].places, rows[i].count, list[i].sums);
        count = 0;
    };
    for (size_t index = task.first; index < task.last; index++) {
        const size_t n0 = index * kUnitColumns;
        if (n0 + kUnitColumns > result.weights->columns()) finish(kUnitTiles);
        Int8Panel& panel = panels[index % kListTiles].emplace(result, n0, (size_t)kUnitColumns);
        const TilePlan::Pairs pairs(own.plan_, task, (const char*)result.weights->packed(), index);
        for (size_t i = 0; i < pairs.size(); i++) {
            const TilePlan::Pair pair = pairs[i];
            Int8UnitTile& tile = list[count];
            (TileOperands&)tile = pair.operands;
            tile.step_k_groups = own.step_ / 4;
            tile.init = panel.init();
            tile.sums = sums + count * kSums;
            set_columns(&tile, panel.width());
            rows[count++] = {&panel, pair.places, pair.rows};
            if (count == kListTiles || pair.tiles < kUnitTiles) finish(pair.tiles);
        }
    }
    finish(kUnitTiles);
}

void Int8TilePlan::Work::multiply(const TilePlan::Task& task) const {
    if (kInt8Lists) return multiply_lists(task);
    alignas(64) int32_t sums[kUnitTiles * kUnitRows * kUnitColumns];
    Int8UnitTile tile;
    tile.step_k_groups = own.step_ / 4;
    tile.sums = sums;
    Epilogue epilogue = {};
    epilogue.sums = sums, epilogue.work = this, epilogue.finish = &Epilogue::finish_all;
    std::optional<Int8Panel> panels[2];  // this one, and that of the rest
    for (size_t index = task.first; index < task.last; index++) {
        Int8Panel& panel =
            panels[index % 2].emplace(result, index * kUnitColumns, (size_t)kUnitColumns);
        tile.init = panel.init();
        const TilePlan::Pairs pairs(own.plan_, task, (const char*)result.weights->packed(), index);
        for (size_t i = 0; i < pairs.size(); i++) {
            const TilePlan::Pair pair = pairs[i];
            (TileOperands&)tile = pair.operands;
            const bool full = panel.width() > 16;
            if (pair.tiles == kUnitTiles && full) {
                own.kernels_.chain(tile, epilogue);
                epilogue.panel = &panel, epilogue.places = pair.places, epilogue.rows = pair.rows;
                continue;
            }
            if (epilogue.rows) own.kernels_.end_chain(epilogue);
            epilogue.rows = 0;
            own.kernels_.sums[pair.tiles - 1][full](tile);
            finish(&panel, pair.places, pair.rows, sums);
        }
    }
    if (epilogue.rows) own.kernels_.end_chain(epilogue);
}

void Int8TilePlan::run(const Int8Result& result, const void* in, float input_scale, int pad,
                       float* workspace) const {
    Work work(*this, result);
    work.in = in;
    work.input_scale = input_scale;
    work.pad_value = pad;
    plan_.run(work, workspace);
}

}  // namespace quoll
