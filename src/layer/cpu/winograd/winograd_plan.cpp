#include "layer/cpu/winograd/winograd_plan.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "quoll/cpu.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

int tiles_along(int out, int size) { return (int)(((int64_t)out + size - 1) / size); }

// Whether there are tiles of several sizes, whose products read A in blocks.
bool has_tile_sizes(const KernelSet& kernels) {
    return kernels.winograd->tile_input && kernels.gemm->blocks;
}

int points_of(int outputs) { return outputs + kWinogradIn - kWinogradOut; }

// Of a dilated axis: the convolutions without dilation, and the most outputs of one.
int grids_along(const ConvAxis& axis) { return std::min(axis.dilation, axis.out); }
int grid_length(const ConvAxis& axis) { return tiles_along(axis.out, axis.dilation); }

// Channels of all slices of a window.
double inputs_of(const ConvShape& s) { return (double)s.in_channels * s.z.kernel; }

// A block of w x h elements, of which those of a row and the rows are this many floats apart.
struct Elements {
    ptrdiff_t row, column;
};

template <size_t lanes>
void copy_blocks(const float* from, const Elements& f, float* to, const Elements& t, int w, int h) {
    for (int y = 0; y < h; y++, from += f.row, to += t.row)
        for (int x = 0; x < w; x++)
            memcpy(to + x * t.column, from + x * f.column, lanes * sizeof(float));
}

// Elements of `lanes` floats.
void copy_elements(size_t lanes, const float* from, const Elements& f, float* to, const Elements& t,
                   int w, int h) {
    if (f.column == (ptrdiff_t)lanes && t.column == f.column) {
        for (int y = 0; y < h; y++, from += f.row, to += t.row)
            memcpy(to, from, w * lanes * sizeof(float));
        return;
    }
    if (lanes == 16) return copy_blocks<16>(from, f, to, t, w, h);
    if (lanes == 8) return copy_blocks<8>(from, f, to, t, w, h);
    if (lanes == 4) return copy_blocks<4>(from, f, to, t, w, h);
    for (size_t i = 0; i < lanes; i++) copy_blocks<1>(from + i, f, to + i, t, w, h);
}

// Of `count` places from `origin`, `step` apart: [*first, *last) are those from 0 to size - 1.
void places_inside(int64_t origin, int step, int count, int size, int* first, int* last) {
    *first = origin < 0 ? (int)std::min<int64_t>(count, (step - 1 - origin) / step) : 0;
    *last = origin < size ? (int)std::min<int64_t>(count, (size - 1 - origin) / step + 1) : 0;
}

}  // namespace

// The two sizes with the fewest points in all; of several the smaller, which round less.
WinogradAxis::WinogradAxis(int out, int most, bool sizes, int stride)
    : length(out),
      stride(stride),
      big(kWinogradOut),
      small(kWinogradOut),
      bigs(tiles_along(out, big)),
      smalls(0) {
    if (!sizes) return;
    const int smallest = stride == 1 ? 2 : 3;
    // Those of even inputs: a point less than at steps of 1, which all tiles have.
    const auto points_of = [&](int outputs) { return quoll::points_of(outputs) + 1 - stride; };
    int least = bigs * points_of(big);
    for (int one : {2, 3, 4, 6})
        for (int other : {2, 3, 4, 6}) {
            if (one > most || other >= one || other < smallest) continue;
            for (int count = tiles_along(out, one); count >= 0; count--) {
                const int rest = std::max(0, out - count * one), more = tiles_along(rest, other);
                const int points = count * points_of(one) + more * points_of(other);
                if (points >= least) continue;
                least = points;
                big = one, small = other, bigs = count, smalls = more;
            }
        }
}

bool WinogradAxis::has(int size, int point) {
    switch (size) {
        case 2:
            return point < 3 || point == 5;
        case 3:
            return point != 4 && point < 6;
        case 4:
            return point < 6;
        default:
            return true;
    }
}

int WinogradAxis::points() const {
    const int points = bigs * points_of(big) + smalls * points_of(small);
    return stride == 1 ? points : points - tiles() + length;
}

int WinogradAxis::begin(int tile) const {
    return std::min(tile, bigs) * big + std::max(0, tile - bigs) * small;
}

int WinogradPlan::axis_points(const KernelSet& kernels, const ConvShape& shape, int most) {
    if (most <= kWinogradOut || !has_tile_sizes(kernels)) return kWinogradIn;
    const WinogradAxis x(grid_length(shape.x), most, true), y(grid_length(shape.y), most, true);
    const int needed = std::max(x.bigs ? x.big : x.small, y.bigs ? y.big : y.small);
    return points_of(std::max<int>(kWinogradOut, needed));
}

bool WinogradPlan::is_supported(const KernelSet& kernels, const ConvShape& s) {
    const auto fits = [&](const ConvAxis& axis) {
        return axis.kernel == 3 && axis.stride == s.x.stride &&
               (axis.stride == 1 || (axis.stride == 2 && axis.dilation == 1));
    };
    return fits(s.x) && fits(s.y) && kernels.lanes > 1 && s.in_pack == kernels.lanes &&
           s.out_pack == kernels.lanes && (s.x.stride == 1 || kernels.winograd->strided_input) &&
           (!has_tile_sizes(kernels) || inputs_of(s) <= kGemmMaxBlocks * (double)kernels.lanes);
}

// Two multiply-adds of a register a cycle, for rows that are tiles (fewer than four do not fill the
// pipeline), and the weights from beyond the core's caches.
double WinogradPlan::cycles(const KernelSet& kernels, const ConvShape& s, const CostTable& costs) {
    const double lanes = kernels.lanes, pairs = inputs_of(s) * s.out_channels;
    const bool sizes = has_tile_sizes(kernels);
    const WinogradAxis x(grid_length(s.x), kWinogradOut, sizes, s.x.stride),
        y(grid_length(s.y), kWinogradOut, sizes, s.y.stride);
    // In tiles of 6 x 6 points.
    const double tiles = (double)grids_along(s.x) * grids_along(s.y) * s.z.out * x.points() *
                         y.points() / kWinogradPoints;
    // Transforms: some 170 and 120 operations a tile and channel block, and their memory traffic.
    const double transforms =
        tiles * (inputs_of(s) * costs.winograd_in + s.out_channels * costs.winograd_out) / lanes;
    return std::max(std::max(tiles, 4.) * kWinogradPoints * pairs / (2 * lanes),
                    kWinogradPoints * pairs * sizeof(float) / costs.memory_bytes) +
           transforms;
}

size_t WinogradPlan::packed_size(const GemmKernels& kernels, size_t in_channels, size_t slices,
                                 size_t out_channels, int points) {
    return (size_t)points * points * gemm_packed_size(kernels, out_channels, in_channels * slices);
}

// Input channels whose transformed windows stay in the second-level cache until they are packed.
static const size_t kPackChannels = 64;

size_t WinogradPlan::pack_scratch(const GemmKernels& kernels, size_t in_channels, size_t slices) {
    const size_t inputs = std::min(in_channels * slices, kPackChannels);
    return kWinogradTilePoints * kWinogradTilePoints * inputs * kernels.lanes * kernels.vectors +
           inputs * 9;
}

// Windows k0 to k0 + count - 1 of an output: those of the first slice of all channels, of the next
// slice, ...; where they lie so, or copied to `windows`.
static const float* gather_windows(const float* weights, size_t in_channels, size_t slices,
                                   size_t k0, size_t count, float* windows) {
    if (slices == 1) return weights + k0 * 9;
    for (size_t k = k0; k < k0 + count; k++)
        memcpy(windows + (k - k0) * 9, weights + (k % in_channels * slices + k / in_channels) * 9,
               9 * sizeof(float));
    return windows;
}

void WinogradPlan::pack(const KernelSet& set, const float* weights, size_t in_channels,
                        size_t slices, size_t out_channels, int points, int stride, float* packed,
                        float* scratch) {
    const GemmKernels& kernels = *set.gemm;
    const size_t columns = (size_t)kernels.lanes * kernels.vectors, k = in_channels * slices;
    const size_t point = gemm_packed_size(kernels, out_channels, k);
    float* const windows =
        scratch + pack_scratch(kernels, in_channels, slices) - std::min(k, kPackChannels) * 9;
    for (size_t n0 = 0; n0 < out_channels; n0 += columns) {
        const size_t count = std::min(columns, out_channels - n0);
        const size_t width = gemm_panel_width(kernels, count);
        for (size_t k0 = 0; k0 < k; k0 += kPackChannels) {
            // scratch: [point][output][input] of a part of one panel.
            const size_t inputs = std::min(kPackChannels, k - k0);
            const size_t step = count * inputs;
            for (size_t n = 0; n < count; n++) {
                const float* const from = gather_windows(weights + (n0 + n) * k * 9, in_channels,
                                                         slices, k0, inputs, windows);
                float* const to = scratch + n * inputs;
                if (stride == 2)
                    set.winograd->strided_weights(from, inputs, to, step);
                else if (has_tile_sizes(set))
                    set.winograd->tile_weights(from, inputs, points, to, step);
                else
                    set.winograd->weights(from, inputs, to, step);
            }
            for (int i = 0; i < points * points; i++)
                gemm_pack(kernels, scratch + i * step, inputs, false, count, inputs,
                          packed + i * point + gemm_b_size(kernels, n0 * k + k0 * width));
        }
    }
}

// Chunks of tiles whose transformed data take half a megabyte, unless the weights are so many that
// streaming them again for each chunk would cost more than data that overflow the second-level
// cache.
static int chunks_for(int tiles, size_t points, size_t channels, size_t weights, int max_rows,
                      bool strided) {
    const size_t budget = (weights > 64 * 64 ? 512 : 128) * 1024;
    const size_t wanted = std::max<size_t>(1, budget / (points * channels) / max_rows);
    const int fitting = (int)((tiles + wanted * max_rows - 1) / (wanted * max_rows));
    // Data of steps of 2 are twice as many.
    if (strided) return fitting;
    // As few as 16 MB of data each allow. All data then go to the third-level cache and come back,
    // at some 8 bytes a cycle; weights come from beyond at some 5.
    const double megabytes = (double)tiles * (double)(points * channels) * sizeof(float) / 0x1p20;
    const int least = (int)ceil(megabytes / 16);
    const double streams = (fitting - least) * (double)weights / 5;
    return streams > 2. * tiles * (double)channels / 8 ? least : fitting;
}

WinogradPlan::WinogradPlan(const KernelSet& kernels, const ConvShape& shape, int points,
                           int threads)
    : kernels_(kernels),
      shape_(shape),
      blocks_(has_tile_sizes(kernels)),
      axis_points_(points),
      sets_(points * points),
      points_(shape.x.stride == 1 ? sets_ : kWinogradStridedIn * kWinogradStridedIn),
      inputs_((size_t)shape.in_channels * shape.z.kernel),
      grids_x_(grids_along(shape.x)),
      grids_y_(grids_along(shape.y)),
      grids_(grids_x_ * grids_y_ * shape.z.out),
      x_(grid_length(shape.x), points - points_of(0), blocks_, shape.x.stride),
      y_(grid_length(shape.y), points - points_of(0), blocks_, shape.y.stride),
      threads_(std::max(1, threads)),
      groups_(1) {
    tiles_ = x_.tiles() * y_.tiles() * grids_;
    const double cycles = choose_chunks();
    if (threads_ > 1) choose_parts(cycles);
    workers_ = std::min(threads_, chunks_ * groups_);
    const Part largest = part(0);
    const size_t room = 256 * 1024 / (points_ * sizeof(float)) / largest.tiles;
    columns_ = std::max<size_t>(1, room / panel_columns()) * panel_columns();
    columns_ = std::min(columns_, largest.columns);
}

size_t WinogradPlan::panel_columns() const {
    return (size_t)kernels_.gemm->lanes * kernels_.gemm->vectors;
}

// Of the products of a part, for which so many bytes come from beyond the core's caches, half of
// that time behind the products.
double WinogradPlan::part_cycles(int tiles, size_t columns, double bytes) const {
    const double pairs = (double)inputs_ * (double)columns;
    return std::max(tiles, 4) * points_ * pairs / (2 * kernels_.lanes) +
           bytes / (2 * host_costs().memory_bytes);
}

// At least two tiles each: products of one row are summed in another order (where A does not lie in
// blocks), and results must not depend on the number of threads.
static int most_chunks(int tiles) { return std::max(1, tiles / 2); }

// Returns the cycles of all products in so many chunks.
double WinogradPlan::choose_chunks() {
    const size_t channels = inputs_ + shape_.out_channels;
    const size_t weights = inputs_ * shape_.out_channels;
    chunks_ = chunks_for(tiles_, points_, channels, weights, kernels_.gemm->max_rows, is_strided());
    // All threads have equally many.
    chunks_ = std::min((chunks_ + threads_ - 1) / threads_ * threads_, most_chunks(tiles_));
    const int turns = (chunks_ + threads_ - 1) / threads_;
    const double bytes = (double)weights * sets_ * sizeof(float);
    return turns * part_cycles((tiles_ + chunks_ - 1) / chunks_, shape_.out_channels, bytes);
}

// Deep layers have few tiles and many weights: threads that share the channels of the outputs read
// each weight once.
void WinogradPlan::choose_parts(double most) {
    const size_t inputs = inputs_, outputs = shape_.out_channels;
    const size_t columns = panel_columns();
    const int panels = (int)((outputs + columns - 1) / columns);
    // Inputs that do not stay in the caches that the threads share must be transformed in chunks;
    // others wander from core to core.
    const double shared = (double)tiles_ * inputs * points_ * sizeof(float);
    if (shared > 16e6) return;
    const double exchange = shared / threads_ / host_costs().memory_bytes;
    for (int chunks = 1; chunks <= std::min(threads_, most_chunks(tiles_)); chunks++) {
        const int tiles = (tiles_ + chunks - 1) / chunks;
        for (int groups = 2; groups <= panels; groups++) {
            const int turns = (chunks * groups + threads_ - 1) / threads_;
            const size_t n = std::min(outputs, (size_t)((panels + groups - 1) / groups) * columns);
            const double bytes =
                ((double)n * sets_ + (double)tiles * points_) * inputs * sizeof(float);
            const double cycles = turns * part_cycles(tiles, n, bytes) + exchange;
            if (cycles >= most) continue;
            most = cycles;
            chunks_ = chunks;
            groups_ = groups;
        }
    }
}

WinogradPlan::Part WinogradPlan::part(int index) const {
    const size_t columns = panel_columns();
    const size_t panels = (shape_.out_channels + columns - 1) / columns;
    const size_t chunk = index / groups_, group = index % groups_;
    Part part;
    part.first = (int)partition_begin(tiles_, chunks_, chunk);
    part.tiles = (int)partition_length(tiles_, chunks_, chunk);
    part.n0 = partition_begin(panels, groups_, group) * columns;
    part.columns =
        std::min(shape_.out_channels - part.n0, partition_length(panels, groups_, group) * columns);
    return part;
}

// The first part is the largest.
size_t WinogradPlan::workspace() const {
    const Part largest = part(0);
    const size_t inputs = inputs_ * points_;
    const size_t sums = largest.tiles * columns_ * points_;
    return groups_ > 1 ? tiles_ * inputs + workers_ * sums
                       : workers_ * (largest.tiles * inputs + sums);
}

void WinogradPlan::run(const float* in, const float* weights, const float* bias, const float* zeros,
                       float* out, const float* residual, size_t residual_step,
                       const FusedActivation& activation, float* workspace) const {
    const Blobs blobs = {in, weights, bias, zeros, out, residual, residual_step, activation};
    const int parts = chunks_ * groups_;
    if (groups_ == 1) {
        const size_t share = this->workspace() / workers_;
        run_tasks(parts, threads_, [&](int64_t i, int thread) {
            run_chunk(blobs, workspace + thread * share, part((int)i));
        });
        return;
    }
    const StridedRows rows(*this, 0, tiles_);
    const Inputs inputs = {workspace, 0, tiles_, is_strided() ? &rows : nullptr};
    const size_t size = points_ * step(inputs);
    const size_t share = (this->workspace() - size) / workers_;
    const int partitions = threads_ * 4;  // of the inputs
    run_tasks(partitions, threads_,
              [&](int64_t i, int) { transform_inputs(in, inputs, (int)i, partitions); });
    run_tasks(parts, threads_, [&](int64_t i, int thread) {
        multiply_part(blobs, inputs, part((int)i), workspace + size + thread * share);
    });
}

// Piece `partition` of `partitions` of all tiles and channel blocks.
void WinogradPlan::transform_inputs(const float* in, const Inputs& to, int partition,
                                    int partitions) const {
    const size_t lanes = kernels_.lanes, blocks = inputs_ / lanes;
    const size_t begin = partition_begin(tiles_ * blocks, partitions, partition);
    const size_t end = begin + partition_length(tiles_ * blocks, partitions, partition);
    for (size_t i = begin; i < end;) {
        const size_t tile = i / blocks, c = i % blocks;
        const size_t count = std::min(blocks - c, end - i);
        transform_tile(in, (int)tile, c * lanes, (c + count) * lanes, to);
        i += count;
    }
}

size_t WinogradPlan::tile_step() const { return blocks_ ? (size_t)kernels_.lanes : inputs_; }

size_t WinogradPlan::block_step(const Inputs& inputs) const {
    if (!blocks_) return (size_t)kernels_.lanes;
    const int rows = inputs.rows ? inputs.rows->begin[sets_] : inputs.tiles;
    return (size_t)rows * kernels_.lanes;
}

// Tiles of one grid are in this order: large along y and small along x, large ones, large along x
// alone, small ones. So those that have a point follow each other.
WinogradPlan::Tile WinogradPlan::tile_of_grid(int i) const {
    Tile t = {};
    const int upper = y_.bigs * x_.tiles(), right = y_.bigs * x_.smalls;
    const bool low = i >= upper;
    if (low) i -= upper;
    const int first = low ? y_.smalls * x_.bigs : right;  // of the first kind of these rows
    const bool wide = low == (i < first);
    if (i >= first) i -= first;
    const int along = wide ? x_.bigs : x_.smalls;
    t.w = wide ? x_.big : x_.small;
    t.h = low ? y_.small : y_.big;
    t.x = wide ? i % along * x_.big : x_.bigs * x_.big + i % along * x_.small;
    t.y = low ? y_.bigs * y_.big + i / along * y_.small : i / along * y_.big;
    return t;
}

// The same tile of all grids follow each other, as do the places that they take.
WinogradPlan::Tile WinogradPlan::tile(int i) const {
    if (grids_ == 1 || is_strided()) {
        Tile t = is_strided() ? strided_tile(i) : tile_of_grid(i);
        t.there_w = std::min(t.w, shape_.x.out - t.x);
        t.there_h = std::min(t.h, shape_.y.out - t.y);
        return t;
    }
    Tile t = tile_of_grid(i / grids_);
    const int grid = i % grids_;
    int first;
    t.x = t.x * shape_.x.dilation + grid % grids_x_;
    t.y = t.y * shape_.y.dilation + grid / grids_x_ % grids_y_;
    t.z = grid / (grids_x_ * grids_y_);
    places_inside(t.x, shape_.x.dilation, t.w, shape_.x.out, &first, &t.there_w);
    places_inside(t.y, shape_.y.dilation, t.h, shape_.y.out, &first, &t.there_h);
    return t;
}

// The transforms of tiles of 4 x 4 do for it, which make one pass of it where the others make two.
bool WinogradPlan::is_plain(const Tile& t) const {
    return axis_points_ == kWinogradIn && t.w == kWinogradOut && t.h == kWinogradOut;
}

// Tiles [*first, *last) have a point of these ids.
void WinogradPlan::tiles_with(int point_y, int point_x, int* first, int* last) const {
    const bool small_x = WinogradAxis::has(x_.small, point_x);
    const bool small_y = WinogradAxis::has(y_.small, point_y);
    const bool big_x = WinogradAxis::has(x_.big, point_x);
    const bool big_y = WinogradAxis::has(y_.big, point_y);
    const int upper = y_.bigs * x_.tiles();
    *first = *last = 0;
    if (!big_x || !big_y) return;
    *first = small_x ? 0 : grids_ * y_.bigs * x_.smalls;
    *last = !small_y ? grids_ * upper : small_x ? tiles_ : grids_ * (upper + y_.smalls * x_.bigs);
}

// Of channel k of the inputs of output slice z; null where it lies outside the blob.
const float* WinogradPlan::input_slice(const float* in, int z, size_t k) const {
    const ConvAxis& axis = shape_.z;
    const size_t slice = k / shape_.in_channels, block = k % shape_.in_channels / shape_.in_pack;
    const int64_t from = (int64_t)z * axis.stride - axis.before + (int64_t)slice * axis.dilation;
    if (from < 0 || from >= axis.in) return nullptr;
    return in + block * shape_.in_step + from * shape_.x.in * shape_.y.in * shape_.in_pack;
}

// The inputs [k0, k1); what lies outside the input is zero.
void WinogradPlan::transform_tile(const float* in, int number, size_t k0, size_t k1,
                                  const Inputs& to) const {
    const size_t lanes = kernels_.lanes, step = this->step(to), block_step = this->block_step(to);
    const Tile t = tile(number);
    const int x0 = t.x * x_.stride - shape_.x.before, y0 = t.y * y_.stride - shape_.y.before;
    const int w = is_strided() ? 2 * t.w + 1 : points_of(t.w);
    const int h = is_strided() ? 2 * t.h + 1 : points_of(t.h);
    int left, right, top, bottom;
    places_inside(x0, shape_.x.dilation, w, shape_.x.in, &left, &right);
    places_inside(y0, shape_.y.dilation, h, shape_.y.in, &top, &bottom);
    const ptrdiff_t row = (ptrdiff_t)shape_.x.in * lanes;
    const Elements blob = {row * shape_.y.dilation, (ptrdiff_t)lanes * shape_.x.dilation};
    const Elements tile = {w * (ptrdiff_t)lanes, (ptrdiff_t)lanes};
    const bool inside = left == 0 && top == 0 && right == w && bottom == h;
    alignas(64) float border[kWinogradStridedIn * kWinogradStridedIn * 16];
    const auto clear = [&] { memset(border, 0, (size_t)w * h * lanes * sizeof(float)); };
    if (!inside) clear();
    const bool plain = is_plain(t);
    WinogradStridedTile strided = {};
    if (is_strided()) {
        int rows[kWinogradPoints];
        to.rows->find(*this, number, rows);
        strided = strided_tile(t, rows, tile_step());
    }
    const auto transform = [&](const float* from, ptrdiff_t from_row, size_t at) {
        float* const out = to.points + (number - to.first) * tile_step() + at;
        if (is_strided())
            kernels_.winograd->strided_input(from, from_row, strided, to.points + at);
        else if (plain)
            kernels_.winograd->input(from, from_row, out, step);
        else
            kernels_.winograd->tile_input(from, from_row, t.w, t.h, out, step, axis_points_);
    };
    const float* slice = nullptr;
    for (size_t k = k0; k < k1; k += lanes) {
        // Blocks of the same slice are equally far apart.
        if (k == k0 || k % shape_.in_channels == 0)
            slice = input_slice(in, t.z, k);
        else if (slice)
            slice += shape_.in_step;
        const size_t at = k / lanes * block_step;
        if (!slice) {
            clear();
            transform(border, tile.row, at);
            continue;
        }
        const float* const from = slice + y0 * row + x0 * (ptrdiff_t)lanes;
        if (inside && !is_dilated()) {
            transform(from, row, at);
            continue;
        }
        if (left < right && top < bottom)
            copy_elements(lanes, from + top * blob.row + left * blob.column, blob,
                          border + top * tile.row + left * tile.column, tile, right - left,
                          bottom - top);
        transform(border, tile.row, at);
    }
}

void WinogradPlan::transform_output(const Blobs& b, const Sums& sums, int number,
                                    const Part& part) const {
    const size_t lanes = kernels_.lanes;
    const Tile t = tile(number);
    if (t.there_w == 0 || t.there_h == 0) return;  // grids differ by a row and a column
    if (is_exact() && !is_finite(sums, t)) return direct_tile(b, t, part);
    const ptrdiff_t row = (ptrdiff_t)shape_.x.out * lanes;
    const Elements blob = {row * shape_.y.dilation, (ptrdiff_t)lanes * shape_.x.dilation};
    const Elements tile = {t.w * (ptrdiff_t)lanes, (ptrdiff_t)lanes};
    alignas(64) float apart[kWinogradOut * kWinogradOut * 16];  // a tile of dilated outputs
    static_assert((kWinogradTilePoints - 2) * (kWinogradTilePoints - 2) * 4 <=
                      kWinogradOut * kWinogradOut * 16,
                  "tiles of several sizes are of 4 lanes");
    const FusedActivation& f = b.activation;
    const float slope = f.max_slope();
    const bool passes = f.pass && slope == 1.f;
    const bool plain = is_plain(t), dilated = is_dilated();
    const WinogradKernels& kernels = *kernels_.winograd;
    const WinogradStridedTile strided =
        is_strided() ? strided_tile(t, sums.rows, sums.step) : WinogradStridedTile();
    const auto transform = [&](size_t at, const float* bias, const float* added, float* out,
                               ptrdiff_t out_row) {
        const float* const points = sums.from + at;
        const size_t step = sums.step;
        if (is_strided())
            kernels.strided_output(points, strided,
                                   {bias, added, out, out_row, f.low, f.high, slope});
        else if (plain)
            kernels.output(points, step, bias, added, out, out_row, t.there_w, t.there_h, f.low,
                           f.high, slope);
        else
            kernels.tile_output({points, step, axis_points_, t.w, t.h, bias, added, out, out_row,
                                 t.there_w, t.there_h, f.low, f.high, slope});
        for (int y = 0; passes && y < t.there_h; y++)
            f.finish(out + y * out_row, t.there_w * lanes);
    };
    const ptrdiff_t at = ((ptrdiff_t)t.z * shape_.y.out + t.y) * row + t.x * (ptrdiff_t)lanes;
    const ptrdiff_t out_step = (ptrdiff_t)shape_.out_step, added_step = (ptrdiff_t)b.residual_step;
    const ptrdiff_t first = (ptrdiff_t)(part.n0 / lanes);
    float* to = b.out + first * out_step + at;
    const float* added = b.residual ? b.residual + first * added_step + at : nullptr;
    const float* bias = b.bias + part.n0;
    for (size_t c = 0; c < part.columns;
         c += lanes, bias += lanes, to += out_step, added += added ? added_step : 0) {
        if (!dilated) {
            transform(c, bias, added, to, row);
            continue;
        }
        if (added) copy_elements(lanes, added, blob, apart, tile, t.there_w, t.there_h);
        transform(c, bias, added ? apart : nullptr, apart, tile.row);
        copy_elements(lanes, apart, tile, to, blob, t.there_w, t.there_h);
    }
}

void WinogradPlan::multiply_part(const Blobs& b, const Inputs& inputs, const Part& part,
                                 float* sums) const {
    for (size_t n = 0; n < part.columns; n += columns_) {
        Part some = part;
        some.n0 += n;
        some.columns = std::min(columns_, part.columns - n);
        if (is_strided())
            multiply_strided(b, inputs, some, sums);
        else
            multiply(b, inputs, some, sums);
    }
}

// What the products of all sets have in common.
GemmMatrix WinogradPlan::product(const Blobs& b, const Inputs& inputs, const Part& part) const {
    GemmMatrix g = {};
    g.kernels = &kernels_;
    g.a_row = (ptrdiff_t)tile_step();
    g.a_k = 1;
    if (blocks_) g.a_block = (ptrdiff_t)block_step(inputs);
    g.n = part.columns;
    g.k = inputs_;
    g.bias = b.zeros;
    g.c_row = (ptrdiff_t)part.columns;
    g.c_pack = part.columns;
    return g;
}

void WinogradPlan::multiply_set(const Blobs& b, const Part& part, int set, GemmMatrix* g) const {
    const size_t size = gemm_packed_size(*kernels_.gemm, shape_.out_channels, inputs_);
    g->b = b.weights + set * size + gemm_b_size(*kernels_.gemm, part.n0 * inputs_);
    g->next_b = set + 1 < sets_ ? g->b + size : nullptr;
    gemm_matrix(*g, 1);
}

// sums: [point][tile][column].
void WinogradPlan::multiply(const Blobs& b, const Inputs& inputs, const Part& part,
                            float* sums) const {
    const size_t out_step = part.tiles * part.columns;
    GemmMatrix g = product(b, inputs, part);
    for (int i = 0; i < sets_; i++) {
        int first = part.first, last = part.first + part.tiles;
        if (blocks_) {
            int begin, end;
            tiles_with(i / axis_points_, i % axis_points_, &begin, &end);
            first = std::max(first, begin), last = std::min(last, end);
        }
        if (first >= last) continue;
        g.a = inputs.points + i * step(inputs) + (first - inputs.first) * tile_step();
        g.m = last - first;
        g.c = sums + i * out_step + (first - part.first) * part.columns;
        multiply_set(b, part, i, &g);
    }
    for (int t = 0; t < part.tiles; t++)
        transform_output(b, {sums + t * part.columns, out_step, nullptr}, part.first + t, part);
}

void WinogradPlan::run_chunk(const Blobs& b, float* workspace, const Part& part) const {
    const StridedRows rows(*this, part.first, part.tiles);
    const Inputs inputs = {workspace, part.first, part.tiles, is_strided() ? &rows : nullptr};
    for (int t = 0; t < part.tiles; t++) transform_tile(b.in, part.first + t, 0, inputs_, inputs);
    multiply_part(b, inputs, part, workspace + points_ * step(inputs));
}

}  // namespace quoll
