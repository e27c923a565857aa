#include "layer/cpu/int8/int8_tiles.h"

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

TilePlan::Unit unit_of(const TileShape& shape, int step_channels) {
    TilePlan::Unit unit;
    unit.step_channels = step_channels;
    unit.position_bytes = kUnitRowBytes;
    unit.step_bytes = (size_t)step_channels * kUnitColumns;
    unit.costs = &host_costs();
    // The loads and multiplications are those of one bf16 product and take the same time.
    unit.step_cycles = unit.costs->split1_step * split_slowness();
    unit.value_cycles = value_cycles(shape);
    unit.finish_cycles = unit.costs->int8_finish + kUnitRows * vector_cycles(shape);
    unit.row_cycles = 0;
    unit.scaled_pixels = 0;
    return unit;
}

}  // namespace

int Int8TilePlan::window_rows(const TileShape& s, int step_channels) {
    if (!has_step_windows(s, step_channels, kUnitRowBytes)) return 0;
    if (s.y.dilation != 1) return 1;
    const int row = s.x.kernel * step_channels;
    const int most = (kUnitRowBytes - copied_bytes(row)) / row + 1;
    const int steps = (s.y.kernel + most - 1) / most;
    return (s.y.kernel + steps - 1) / steps;
}

Int8TilePlan::Int8TilePlan(const Int8UnitKernels& kernels, const TileShape& shape,
                           int step_channels, int threads)
    : kernels_(kernels),
      shape_(shape),
      channels_(step_channels),
      rows_(window_rows(shape, step_channels)),
      step_(rows_ ? rows_ * shape.x.kernel * step_channels : step_channels),
      plan_(unit_of(shape, step_), rows_ ? windows_of(shape, channels_, rows_) : shape, threads) {}

bool Int8TilePlan::beats_vectors(size_t line, size_t lines) const {
    const TileShape& s = shape();
    const Int8Kernels& vectors = *host_kernel_set().int8;
    const size_t partitions = (line + vectors.max_rows - 1) / vectors.max_rows;
    const double rows = (double)line / partitions;
    const size_t blocks = (s.in_channels + channels_ - 1) / channels_;
    const double k_groups = (double)blocks * channels_ / 4 * s.x.kernel * s.y.kernel;
    const double halves = (s.out_channels + vectors.lanes - 1) / vectors.lanes;
    // A row's dot products of four take half a cycle each (two ports), but a chain of them five
    // cycles a k-group.
    const double products = (double)lines * partitions * k_groups * halves / 2 * std::max(rows, 5.);
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
    void begin(int tile_rows) const override { own.kernels_.begin(tile_rows, own.step_); }
    void end() const override { own.kernels_.end(); }
    void pad(char* to, size_t positions) const override {
        memset(to, pad_value + kernels().offset, positions * kUnitRowBytes);
    }
    void pack_a(ptrdiff_t at, int channel, size_t pixels, const float*, char* to) const override {
        if (own.rows_)
            pack_windows(at / own.shape_.x.out, at % own.shape_.x.out, pixels, to);
        else
            pack_pixels(at, channel, pixels, own.shape_.x.stride, to, kUnitRowBytes);
    }
    void multiply(const char* a, size_t block, size_t first, size_t last) const override;

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
            copy(line, step, run.windows, to + done * kUnitRowBytes + r * row_bytes);
        }
    });
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

void Int8TilePlan::Work::multiply(const char* a, size_t block, size_t first, size_t last) const {
    alignas(64) int32_t sums[kUnitTiles * kUnitRows * kUnitColumns];
    Int8UnitTile tile;
    tile.step_k_groups = own.step_ / 4;
    tile.sums = sums;
    Epilogue epilogue = {};
    epilogue.sums = sums, epilogue.work = this, epilogue.finish = &Epilogue::finish_all;
    std::optional<Int8Panel> panels[2];  // this one, and that of the rest
    for (size_t index = first; index < last; index++) {
        Int8Panel& panel = panels[index % 2].emplace(result, index);
        tile.init = panel.init();
        const TilePlan::Pairs pairs(own.plan_, a, (const char*)result.weights->packed(), block,
                                    index);
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
