#include "layer/cpu/conv/split_plan.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

#include "cpu.h"
#include "scalar_private.h"

namespace quoll {

namespace {

bool same(const ConvAxis& a, const ConvAxis& b) {
    return a.in == b.in && a.out == b.out && a.kernel == b.kernel && a.stride == b.stride &&
           a.dilation == b.dilation && a.before == b.before;
}

size_t divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

// Time of a tile multiplication with that many rows, relative to 16 (measured on Sapphire Rapids).
double row_cost(int rows) {
    static const double costs[] = {.572, .618, .69, .755, .79, .827, .866, .906, .953, 1};
    return costs[std::max(0, rows - 7)];
}

// Cycles of a tile multiplication with its share of the loads, which weigh more the fewer products
// there are (bench_conv, Sapphire Rapids).
double tile_cycles(int products) { return products == 6 ? 21.5 : products == 3 ? 25 : 36; }

// Cycles of splitting one value; of one tile's way to C, and of a row of C that the kernel does not
// write itself. Bytes a cycle of weights from beyond a core's own caches, whose reading one core
// hides in part behind its work.
double split_cycles(int terms) { return .2 * terms; }
const double kFinishCycles = 200, kRowCycles = 120;
const double kWeightBytes = 5, kHiddenWeightBytes = 10;

}  // namespace

bool operator==(const SplitShape& a, const SplitShape& b) {
    return same(a.x, b.x) && same(a.y, b.y) && a.in_channels == b.in_channels &&
           a.out_channels == b.out_channels && a.in_pack == b.in_pack && a.in_pixel == b.in_pixel &&
           a.in_row == b.in_row && a.in_block == b.in_block && a.out_pack == b.out_pack &&
           a.out_pixel == b.out_pixel && a.out_row == b.out_row && a.out_block == b.out_block &&
           a.narrow_in == b.narrow_in && a.narrow_out == b.narrow_out;
}

SplitShape split_shape(const ConvShape& conv) {
    SplitShape s = {};
    s.x = conv.x;
    s.y = conv.y;
    s.in_channels = conv.in_channels;
    s.out_channels = conv.out_channels;
    s.in_pack = conv.in_pack;
    s.in_pixel = conv.in_pack;
    s.in_row = (ptrdiff_t)conv.x.in * conv.in_pack;
    s.in_block = (ptrdiff_t)conv.in_step;
    s.out_pack = conv.out_pack;
    s.out_pixel = conv.out_pack;
    s.out_row = (ptrdiff_t)conv.x.out * conv.out_pack;
    s.out_block = (ptrdiff_t)conv.out_step;
    return s;
}

SplitShape split_shape(size_t m, size_t n, size_t k, ptrdiff_t a_row, ptrdiff_t c_row) {
    SplitShape s = {};
    s.x = {(int)m, (int)m, 1, 1, 1, 0};
    s.y = {1, 1, 1, 1, 1, 0};
    s.in_channels = (int)k;
    s.out_channels = (int)n;
    s.in_pack = 16;
    s.in_pixel = a_row;
    s.in_block = 16;
    s.out_pack = n;
    s.out_pixel = c_row;
    return s;
}

const SplitGemmKernels* split_kernels_for(const Option& opt) {
    const int products = opt.use_bf16_storage ? 1 : opt.use_fp32_split;
    return products == 6 || products == 3 || products == 1 ? usable_split_gemm_kernels(products)
                                                           : nullptr;
}

// ---------------------------------------------------------------- axes

SplitPlan::Axis::Axis(const ConvAxis& a) : axis(a), shift((a.kernel - 1) * a.dilation / a.stride) {
    for (int tap = 0; tap < a.kernel; tap++) {
        const int phase = tap * a.dilation % a.stride;
        if (std::find(phases.begin(), phases.end(), phase) == phases.end()) phases.push_back(phase);
    }
    length = a.out + shift;
}

int SplitPlan::Axis::plane(int tap) const {
    const int phase = tap * axis.dilation % axis.stride;
    return (int)(std::find(phases.begin(), phases.end(), phase) - phases.begin());
}

void SplitPlan::Axis::inside(int phase, int* begin, int* end) const {
    const int first = axis.before - phase, last = axis.in + axis.before - phase;
    const int s = axis.stride;
    *begin = std::min(length, first > 0 ? (first + s - 1) / s : 0);
    *end = std::max(*begin, std::min(length, last > 0 ? (last + s - 1) / s : 0));
}

bool SplitPlan::takes(const SplitShape& s) {
    const auto length = [](const ConvAxis& a) {
        return a.out + (double)(a.kernel - 1) * a.dilation / a.stride + 1;
    };
    const double positions = length(s.x) * length(s.y);
    const double out = (double)s.x.out * s.out_pixel + (double)s.y.out * s.out_row;
    const double taps = (double)s.x.kernel * s.y.kernel;
    // Offsets in gathers and in the list of places are 32 bits wide, as are positions.
    const double most = INT_MAX / 2;
    return s.x.out > 0 && s.y.out > 0 && positions < most / 16 && out < most &&
           (double)s.in_block * 16 < most && taps <= 1024 && taps * s.in_channels < 1 << 22;
}

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

// ---------------------------------------------------------------- the plan

SplitPlan::SplitPlan(const SplitGemmKernels& kernels, const SplitShape& shape, int threads)
    : kernels_(kernels),
      shape_(shape),
      x_(shape.x),
      y_(shape.y),
      wanted_threads_(threads),
      threads_(std::max(1, threads)),
      pitch_(x_.length),
      channel_blocks_(split_steps(shape.in_channels)),
      planes_(x_.phases.size() * y_.phases.size()),
      panels_(divide_up(shape.out_channels, kSplitColumns)) {
    if (shape.x.stride == 1) {
        // The zeros at the end of a row are those at the beginning of the next.
        int begin, end;
        x_.inside(0, &begin, &end);
        if (begin < end) pitch_ -= std::min(std::min(begin, x_.length - end), x_.shift);
    }
    choose_tiles();
    choose_blocks();
    add_steps();
}

// Tiles either run on from row to row of the output, or begin anew in each.
void SplitPlan::choose_tiles() {
    const int w = shape_.x.out, h = shape_.y.out;
    const size_t flat = (size_t)(h - 1) * pitch_ + w;
    double best = INFINITY;
    bool best_by_line = false;
    for (int rows = kSplitRows; rows >= 7; rows--) {
        const double all = (double)divide_up(flat, rows) * row_cost(rows);
        const double by_line = (double)divide_up(w, rows) * h * row_cost(rows);
        if (std::min(all, by_line) >= best) continue;
        best = std::min(all, by_line);
        best_by_line = by_line < all;
        tile_rows_ = rows;
    }
    add_tiles(tile_rows_, best_by_line);
}

void SplitPlan::add_tiles(int rows, bool by_line) {
    const int w = shape_.x.out, h = shape_.y.out;
    const size_t flat = (size_t)(h - 1) * pitch_ + w;
    for (int y = 0; by_line && y < h; y++)
        for (int x = 0; x < w; x += rows) starts_.push_back(y * pitch_ + x);
    for (size_t p = 0; !by_line && p < flat; p += rows) starts_.push_back((int32_t)p);
    places_.reserve(starts_.size() * rows);
    for (int32_t start : starts_) {
        const int line = start / pitch_;
        for (int p = start; p < start + rows; p++) {
            const int y = p / pitch_, x = p % pitch_;
            const bool exists = y < h && x < w && (!by_line || y == line);
            places_.push_back(exists ? (int32_t)(y * shape_.out_row + x * shape_.out_pixel) : -1);
        }
    }
}

// Positions that the largest of blocks of so many pairs of tiles reads.
size_t SplitPlan::block_positions(size_t pairs) const {
    const size_t tiles = std::min(starts_.size(), pairs * kSplitTiles);
    size_t most = 0;
    for (size_t t = 0; t < starts_.size(); t += kSplitTiles) {
        const size_t last = std::min(t + tiles, starts_.size()) - 1;
        most = std::max<size_t>(most, starts_[last] - starts_[t]);
    }
    return most + tile_rows_ + (size_t)y_.shift * pitch_ + x_.shift;
}

size_t SplitPlan::panel_bytes() const {
    const size_t steps = channel_blocks_ * shape_.x.kernel * shape_.y.kernel;
    return split_panel_size(kernels_.terms, steps) * sizeof(uint16_t);
}

// Splitting and multiplying of a block, which has so many positions, by some panels.
double SplitPlan::task_cycles(size_t pairs, size_t positions, size_t panels) const {
    const double steps = (double)channel_blocks_ * shape_.x.kernel * shape_.y.kernel;
    const double tile =
        steps * kernels_.products * tile_cycles(kernels_.products) * row_cost(tile_rows_) +
        kFinishCycles;
    const size_t tiles = std::min(pairs * kSplitTiles, starts_.size());
    const size_t halves = std::min(2 * panels, divide_up(shape_.out_channels, kSplitColumns / 2));
    const bool direct = shape_.out_pack % 16 == 0 || shape_.out_pack >= (size_t)shape_.out_channels;
    return (double)positions * planes_ * channel_blocks_ * kSplitK * split_cycles(kernels_.terms) +
           (double)tiles * halves * tile +
           (direct ? 0. : (double)tiles * tile_rows_ * panels * kRowCycles);
}

// Blocks whose buffer stays in the second-level cache beside a panel, and as many tasks as keep the
// threads busy.
void SplitPlan::choose_blocks() {
    const size_t pairs = divide_up(starts_.size(), kSplitTiles);
    const size_t position = channel_blocks_ * planes_ * kernels_.terms * kSplitK;  // bf16 values
    const size_t cache = 1700 * 1024, least_budget = 640 * 1024;
    const size_t panel = panel_bytes();
    const size_t budget =
        std::max(least_budget, cache > panel ? cache - panel : 0) / sizeof(uint16_t);
    const size_t halo = (size_t)y_.shift * pitch_ + x_.shift;
    const size_t room = budget / position > halo ? (budget / position - halo) / tile_rows_ : 0;
    const size_t least = divide_up(pairs, std::max<size_t>(1, room / kSplitTiles));
    const size_t most_tasks = threads_ > 1 ? std::min<size_t>(threads_ * 4, 256) : 1;
    cycles_ = INFINITY;
    for (size_t blocks = least; blocks <= std::min(pairs, least + most_tasks - 1); blocks++) {
        const size_t block_pairs = divide_up(pairs, blocks);
        const size_t positions = block_positions(block_pairs);
        for (size_t groups = 1; groups <= std::min(panels_, most_tasks); groups++) {
            const size_t share = divide_up(panels_, groups);
            const double turns = (double)divide_up(blocks * groups, threads_);
            const double bytes = (double)(panel * share);
            // Few weights stay in the cache from one block to the next.
            const double reads = bytes < cache / 2 ? 1 : turns;
            const double time = turns * task_cycles(block_pairs, positions, share) +
                                reads * bytes / (threads_ > 1 ? kWeightBytes : kHiddenWeightBytes);
            if (time >= cycles_) continue;
            cycles_ = time;
            blocks_ = blocks;
            groups_ = groups;
        }
    }
    threads_ = (int)std::min<size_t>(threads_, blocks_ * groups_);
    plane_length_ = block_positions(divide_up(pairs, blocks_));
    share_ = plane_length_ * position;
}

void SplitPlan::add_steps() {
    const ConvAxis &x = shape_.x, &y = shape_.y;
    for (size_t c = 0; c < channel_blocks_; c++)
        for (int ky = 0; ky < y.kernel; ky++)
            for (int kx = 0; kx < x.kernel; kx++) {
                const size_t plane = y_.plane(ky) * x_.phases.size() + x_.plane(kx);
                const size_t position =
                    (size_t)(ky * y.dilation / y.stride) * pitch_ + kx * x.dilation / x.stride;
                steps_.push_back((ptrdiff_t)(((c * planes_ + plane) * plane_length_ + position) *
                                             kernels_.terms * kSplitK));
            }
}

double SplitPlan::cycles(const SplitGemmKernels& kernels, const SplitShape& shape, int threads) {
    return SplitPlan(kernels, shape, threads).cycles_;
}

// ---------------------------------------------------------------- splitting

void SplitPlan::block_tiles(size_t block, size_t* first, size_t* last) const {
    const size_t pairs = divide_up(starts_.size(), kSplitTiles);
    *first = piece_begin(pairs, blocks_, block) * kSplitTiles;
    *last = std::min(*first + piece_length(pairs, blocks_, block) * kSplitTiles, starts_.size());
}

// Positions q0 <= q < q1 of row y of one plane, all channels.
void SplitPlan::split_line(const void* in, int y, int plane_y, int plane_x, int q0, int q1,
                           uint16_t* to) const {
    const SplitShape& s = shape_;
    const size_t position = (size_t)kernels_.terms * kSplitK;
    const size_t channel_step = planes_ * plane_length_ * position;
    int top, bottom, left, right;
    y_.inside(y_.phases[plane_y], &top, &bottom);
    x_.inside(x_.phases[plane_x], &left, &right);
    if (y < top || y >= bottom) left = right = q1;
    left = std::min(std::max(left, q0), q1);
    right = std::min(std::max(right, left), q1);
    const ptrdiff_t row = (ptrdiff_t)y * s.y.stride + y_.phases[plane_y] - s.y.before;
    const ptrdiff_t column = (ptrdiff_t)left * s.x.stride + x_.phases[plane_x] - s.x.before;
    const int kernel = s.in_pack == 16 ? 3 : s.in_pack == 8 ? 2 : s.in_pack == 4 ? 1 : 0;
    for (size_t c = 0; c < channel_blocks_; c++, to += channel_step) {
        memset(to, 0, (left - q0) * position * sizeof(uint16_t));
        memset(to + (right - q0) * position, 0, (q1 - right) * position * sizeof(uint16_t));
        if (left == right) continue;
        SplitInput input;
        const ptrdiff_t at = row * s.in_row + column * s.in_pixel +
                             (ptrdiff_t)(c * kSplitK / s.in_pack) * s.in_block;
        input.src = s.narrow_in ? (const void*)((const uint16_t*)in + at) : (const float*)in + at;
        input.src_pixel = s.x.stride * s.in_pixel;
        input.src_block = s.in_block;
        input.channels = std::min<int>(kSplitK, s.in_channels - (int)c * kSplitK);
        input.pixels = right - left;
        input.dst = to + (left - q0) * position;
        input.dst_pixel = (ptrdiff_t)position;
        (s.narrow_in ? kernels_.copy : kernels_.input)[kernel](input);
    }
}

void SplitPlan::split_block(const void* in, size_t block, uint16_t* to) const {
    size_t first, last;
    block_tiles(block, &first, &last);
    const int begin = starts_[first];
    const int end = starts_[last - 1] + tile_rows_ + y_.shift * pitch_ + x_.shift;
    const size_t position = (size_t)kernels_.terms * kSplitK;
    for (size_t plane = 0; plane < planes_; plane++) {
        const int plane_y = (int)(plane / x_.phases.size());
        const int plane_x = (int)(plane % x_.phases.size());
        uint16_t* plane_to = to + plane * plane_length_ * position;
        for (int p = begin; p < end;) {
            const int y = p / pitch_, stop = std::min(end, (y + 1) * pitch_);
            split_line(in, y, plane_y, plane_x, p - y * pitch_, stop - y * pitch_,
                       plane_to + (size_t)(p - begin) * position);
            p = stop;
        }
    }
}

// ---------------------------------------------------------------- multiplying

struct SplitPlan::Pointers {
    const uint16_t* weights;
    const float* bias;
    void* out;
    const void* residual;
    ptrdiff_t residual_block;
    const FusedActivation& activation;
};

// Columns of C that one panel gives.
struct SplitPlan::Panel {
    size_t n0, columns;
    SplitTileKernel kernels[kSplitTiles];
    bool direct;  // whole vectors of C, which the kernel writes itself
    ptrdiff_t c, c_vector, residual, r_vector;
};

namespace {

ptrdiff_t column_offset(const SplitShape& s, size_t n, ptrdiff_t block) {
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

SplitPlan::Panel SplitPlan::make_panel(const Pointers& p, size_t index) const {
    const SplitShape& s = shape_;
    Panel panel;
    panel.n0 = index * kSplitColumns;
    panel.columns = std::min<size_t>(kSplitColumns, s.out_channels - panel.n0);
    const int full = panel.columns > 16;
    for (int t = 0; t < kSplitTiles; t++) panel.kernels[t] = kernels_.tile[t][full];
    panel.direct = s.out_pack % 16 == 0 || s.out_pack >= (size_t)s.out_channels;
    panel.c = column_offset(s, panel.n0, s.out_block);
    panel.residual = column_offset(s, panel.n0, p.residual_block);
    panel.c_vector = full ? column_offset(s, panel.n0 + 16, s.out_block) - panel.c : 0;
    panel.r_vector = full ? column_offset(s, panel.n0 + 16, p.residual_block) - panel.residual : 0;
    return panel;
}

// One call of a kernel, whose A and B are set.
void SplitPlan::run_tiles(const Pointers& p, const Panel& panel, SplitTile* tile) const {
    const int count = tile->a_tile ? kSplitTiles : 1, rows = count * tile_rows_;
    const int32_t* places = tile->rows;
    tile->low = p.activation.low;
    tile->high = p.activation.high;
    if (!panel.direct || (p.activation.pass && shape_.narrow_out && p.residual))
        return run_through_buffer(p, panel, tile);
    if (p.activation.pass && shape_.narrow_out) return run_with_pass(p, panel, tile);
    tile->narrow = shape_.narrow_out;
    tile->c = tile->narrow ? (void*)((uint16_t*)p.out + panel.c) : (float*)p.out + panel.c;
    tile->c_vector = panel.c_vector;
    const size_t size = tile->narrow ? sizeof(uint16_t) : sizeof(float);
    tile->residual = p.residual ? (const char*)p.residual + panel.residual * size : nullptr;
    tile->r_vector = panel.r_vector;
    panel.kernels[count - 1](*tile);
    for (size_t n = 0; p.activation.pass && n < panel.columns; n += 16)
        finish_rows(p.activation, (float*)tile->c + (n ? panel.c_vector : 0), places, rows,
                    std::min<size_t>(16, panel.columns - n));
}

// The same where f32 results need a pass before they are narrowed.
void SplitPlan::run_with_pass(const Pointers& p, const Panel& panel, SplitTile* tile) const {
    const int count = tile->a_tile ? kSplitTiles : 1, rows = count * tile_rows_;
    const int full = panel.columns > 16, width = full ? kSplitColumns : kSplitColumns / 2;
    alignas(64) float sums[kSplitTiles * kSplitRows * kSplitColumns];
    int32_t own[kSplitTiles * kSplitRows];
    for (int m = 0; m < rows; m++) own[m] = m * width;
    SplitTile wide = *tile;
    wide.c = sums;
    wide.narrow = false;
    wide.rows = own;
    wide.c_vector = 16;
    wide.columns = width;
    wide.residual = nullptr;
    panel.kernels[count - 1](wide);
    p.activation.finish(sums, (size_t)rows * width);
    tile->narrow = true;
    tile->c = (uint16_t*)p.out + panel.c;
    tile->c_vector = panel.c_vector;
    tile->residual = nullptr;
    kernels_.store[count - 1][full](*tile, sums);
}

// The same where the kernel's results are not yet what C holds.
void SplitPlan::run_through_buffer(const Pointers& p, const Panel& panel, SplitTile* tile) const {
    const int count = tile->a_tile ? kSplitTiles : 1, rows = count * tile_rows_;
    const int32_t* places = tile->rows;
    alignas(64) float buffer[kSplitTiles * kSplitRows * kSplitColumns];
    alignas(64) float residual[kSplitTiles * kSplitRows * kSplitColumns];
    int32_t own[kSplitTiles * kSplitRows];
    for (int m = 0; m < rows; m++) {
        own[m] = places[m] < 0 ? -1 : m * kSplitColumns;
        for (size_t j = 0; p.residual && places[m] >= 0 && j < panel.columns; j++)
            residual[m * kSplitColumns + j] = residual_at(p, panel.n0 + j, places[m]);
    }
    tile->c = buffer;
    tile->narrow = false;
    tile->rows = own;
    tile->c_vector = tile->r_vector = 16;
    tile->residual = p.residual ? residual : nullptr;
    panel.kernels[count - 1](*tile);
    for (int m = 0; m < rows; m++) {
        if (places[m] < 0) continue;
        p.activation.finish(buffer + m * kSplitColumns, panel.columns);
        store_row(p, panel, buffer + m * kSplitColumns, places[m]);
    }
}

float SplitPlan::residual_at(const Pointers& p, size_t column, int32_t place) const {
    const ptrdiff_t at = place + column_offset(shape_, column, p.residual_block);
    return shape_.narrow_out ? float_from_bfloat(((const uint16_t*)p.residual)[at])
                             : ((const float*)p.residual)[at];
}

// A row of a panel's columns to its place in C.
void SplitPlan::store_row(const Pointers& p, const Panel& panel, const float* from,
                          int32_t place) const {
    for (size_t j = 0; j < panel.columns;) {
        const size_t inside = (panel.n0 + j) % shape_.out_pack;
        const size_t run = std::min(panel.columns - j, shape_.out_pack - inside);
        const ptrdiff_t at = place + column_offset(shape_, panel.n0 + j, shape_.out_block);
        for (size_t i = 0; i < run && shape_.narrow_out; i++)
            ((uint16_t*)p.out)[at + i] = bfloat_from_float(from[j + i]);
        for (size_t i = 0; i < run && !shape_.narrow_out; i++)
            ((float*)p.out)[at + i] = from[j + i];
        j += run;
    }
}

void SplitPlan::run_panel(const Pointers& p, const uint16_t* a, size_t block, size_t index) const {
    size_t first, last;
    block_tiles(block, &first, &last);
    const size_t position = (size_t)kernels_.terms * kSplitK;
    const size_t panel_size = split_panel_size(kernels_.terms, steps_.size());
    const Panel panel = make_panel(p, index);
    // Weights that do not stay in the cache are fetched while the panel before them is at work.
    const size_t total = panel_size * panels_ * sizeof(uint16_t);
    const bool fetch =
        total > 1024 * 1024 && (index + 2) * kSplitColumns <= (size_t)shape_.out_channels;
    const char* next = (const char*)(p.weights + (index + 1) * panel_size);
    const size_t bytes = panel_size * sizeof(uint16_t),
                 calls = divide_up(last - first, kSplitTiles);
    SplitTile tile = {};
    tile.a_row = (ptrdiff_t)position;
    tile.tile_rows = tile_rows_;
    tile.steps = steps_.data();
    tile.num_steps = steps_.size();
    tile.b = p.weights + index * panel_size;
    tile.bias = p.bias + panel.n0;
    tile.columns = panel.columns;
    for (size_t t = first, call = 0; t < last; t += kSplitTiles, call++) {
        tile.a = a + (size_t)(starts_[t] - starts_[first]) * position;
        tile.a_tile = t + 1 < last ? (ptrdiff_t)((starts_[t + 1] - starts_[t]) * position) : 0;
        tile.rows = places_.data() + t * tile_rows_;
        tile.next = fetch ? next + bytes * call / calls / 64 * 64 : nullptr;
        tile.next_bytes = bytes / calls;
        run_tiles(p, panel, &tile);
    }
}

void SplitPlan::run(const void* in, const uint16_t* weights, const float* bias, void* out,
                    const void* residual, ptrdiff_t residual_block,
                    const FusedActivation& activation, float* workspace) const {
    const Pointers pointers = {weights, bias, out, residual, residual_block, activation};
    const int tasks = (int)(blocks_ * groups_);
#pragma omp parallel num_threads(threads_) if (threads_ > 1)
    {
        uint16_t* own = (uint16_t*)workspace + (threads_ > 1 ? get_omp_thread_num() * share_ : 0);
        size_t split = blocks_;  // the block that `own` holds
        kernels_.begin(tile_rows_);
#pragma omp for schedule(dynamic)
        for (int t = 0; t < tasks; t++) {
            const size_t block = t / groups_, group = t % groups_;
            if (block != split) split_block(in, block, own);
            split = block;
            const size_t p0 = piece_begin(panels_, groups_, group);
            for (size_t p = p0; p < p0 + piece_length(panels_, groups_, group); p++)
                run_panel(pointers, own, block, p);
        }
        kernels_.end();
    }
}

}  // namespace quoll
