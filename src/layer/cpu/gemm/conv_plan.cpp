#include "layer/cpu/gemm/conv_plan.h"

#include <stdint.h>

#include <algorithm>

#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/gemm/narrow_gemm.h"
#include "layer/cpu/gemm/planar_product.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

bool same(const ConvAxis& a, const ConvAxis& b) {
    return a.in == b.in && a.out == b.out && a.kernel == b.kernel && a.stride == b.stride &&
           a.dilation == b.dilation && a.before == b.before;
}

// With planar input, a run of k is either the channels of one tap or the taps of one kernel row;
// the longer run is better.
bool taps_are_outer(int in_channels, int in_pack, int kernel_w) {
    return in_pack == 1 && in_channels > kernel_w;
}

// The time of a line of tiles in units of one row: few rows do not fill the multiplier's pipeline.
int line_cost(int length, int max_rows) {
    const int partitions = (length + max_rows - 1) / max_rows;
    return std::max(length, 5 * partitions);
}

}  // namespace

bool operator==(const ConvShape& a, const ConvShape& b) {
    return same(a.x, b.x) && same(a.y, b.y) && same(a.z, b.z) && a.in_channels == b.in_channels &&
           a.out_channels == b.out_channels && a.in_pack == b.in_pack && a.out_pack == b.out_pack &&
           a.in_step == b.in_step && a.out_step == b.out_step;
}

std::vector<int> conv_weight_order(int in_channels, int in_pack, int kernel_w, int rows) {
    const int taps = kernel_w * rows;
    std::vector<int> order;
    order.reserve((size_t)in_channels * taps);
    if (taps_are_outer(in_channels, in_pack, kernel_w)) {
        for (int t = 0; t < taps; t++)
            for (int c = 0; c < in_channels; c++) order.push_back(c * taps + t);
        return order;
    }
    for (int c = 0; c < in_channels; c += in_pack)
        for (int t = 0; t < taps; t++)
            for (int i = 0; i < in_pack; i++) order.push_back((c + i) * taps + t);
    return order;
}

namespace {

// For windows of several taps, whose sums are long enough for adding up lanes to be worth it.
bool is_narrow(const GemmKernels& kernels, const ConvShape& s) {
    const int taps = s.x.kernel * s.y.kernel * s.z.kernel;
    return !kFewKernels && kernels.narrow && kernels.narrow->run[0] && kernels.halves == 2 &&
           s.in_pack == kernels.lanes && s.out_channels <= kGemmMostNarrow &&
           (s.out_pack == 1 || s.out_pack == s.out_channels) && taps > 1;
}

// [k / lanes][columns][lanes]
void pack_narrow(const float* weights, const std::vector<int>& order, size_t columns, size_t lanes,
                 float* packed) {
    for (size_t k = 0; k < order.size(); k += lanes)
        for (size_t n = 0; n < columns; n++)
            for (size_t i = k; i < k + lanes; i++) *packed++ = weights[n * order.size() + order[i]];
}

}  // namespace

void conv_pack_weights(const GemmKernels& kernels, const float* weights, const ConvShape& s,
                       float* packed) {
    const int rows = s.y.kernel * s.z.kernel;
    const size_t k = (size_t)s.in_channels * s.x.kernel * rows;
    if (s.x.kernel * rows == 1)
        return gemm_pack(kernels, weights, k, false, s.out_channels, k, packed);
    const std::vector<int> order = conv_weight_order(s.in_channels, s.in_pack, s.x.kernel, rows);
    if (is_narrow(kernels, s))
        return pack_narrow(weights, order, s.out_channels, kernels.lanes, packed);
    gemm_pack_ordered(kernels, weights, k, order.data(), s.out_channels, k, packed);
}

// The taps of output i whose inputs exist.
void ConvPlan::taps_inside(const ConvAxis& axis, int i, int* first, int* last) {
    // Tap t reads at origin + t * dilation.
    const int64_t origin = (int64_t)i * axis.stride - axis.before, d = axis.dilation;
    const int64_t low = origin < 0 ? (-origin + d - 1) / d : 0;
    const int64_t high = origin < axis.in ? (axis.in - 1 - origin) / d + 1 : 0;
    *first = (int)std::min<int64_t>(low, axis.kernel);
    *last = (int)std::min<int64_t>(high, axis.kernel);
    if (*first >= *last) *first = *last = 0;
}

std::vector<ConvPlan::Range> ConvPlan::split_axis(const ConvAxis& axis) {
    std::vector<Range> ranges;
    for (int i = 0; i < axis.out; i++) {
        int first, last;
        taps_inside(axis, i, &first, &last);
        if (!ranges.empty() && ranges.back().tap_first == first && ranges.back().tap_last == last) {
            ranges.back().last++;
        } else {
            ranges.push_back({i, i + 1, first, last});
        }
    }
    return ranges;
}

// What split_axis has.
int ConvPlan::count_ranges(const ConvAxis& axis) {
    int count = 0, first = -1, last = -1;
    for (int i = 0; i < axis.out; i++) {
        const int old_first = first, old_last = last;
        taps_inside(axis, i, &first, &last);
        count += first != old_first || last != old_last;
    }
    return count;
}

bool ConvPlan::is_supported(const ConvShape& s) {
    const double lists =
        (double)count_ranges(s.x) * (double)count_ranges(s.y) * (double)count_ranges(s.z);
    const double blocks = (double)s.x.kernel * s.y.kernel * s.z.kernel * s.in_channels / s.in_pack;
    return lists == 1 || lists * blocks <= 1 << 20;
}

// The share of an axis's taps that read the input.
double ConvPlan::share_inside(const ConvAxis& axis) {
    int64_t taps = 0;
    for (int i = 0; i < axis.out; i++) {
        int first, last;
        taps_inside(axis, i, &first, &last);
        taps += last - first;
    }
    return (double)taps / ((double)axis.out * axis.kernel);
}

// How much is lost if few outputs do not fill whole registers, or by the loads and sums at the ends
// if lanes run along the inputs.
static double idle_lanes(const KernelSet& kernels, const ConvShape& s) {
    if (is_narrow(*kernels.gemm, s)) return 2;
    return s.out_channels < kernels.lanes ? (double)kernels.lanes / s.out_channels : 1;
}

// Two multiply-adds of a register per cycle; and weights that come from beyond a core's own caches,
// half of which is hidden behind the work.
double ConvPlan::cycles(const KernelSet& kernels, const ConvShape& s, const CostTable& costs) {
    const double weights =
        (double)s.in_channels * s.out_channels * s.x.kernel * s.y.kernel * s.z.kernel;
    const double pixels = (double)s.x.out * s.y.out * s.z.out;
    // In a usual window few taps are outside the input; in a dilated one, or one in slices, all but
    // one may be.
    double inside = share_inside(s.z);
    for (const ConvAxis* axis : {&s.x, &s.y})
        if (axis->dilation > 1) inside *= share_inside(*axis);
    return pixels * inside * weights / (2 * kernels.lanes) * costs.direct_overhead *
               idle_lanes(kernels, s) +
           weights * 4 / (2 * costs.memory_bytes);
}

ConvPlan::ConvPlan(const KernelSet& kernels, const ConvShape& shape)
    : kernels_(kernels), shape_(shape), narrow_(is_narrow(*kernels.gemm, shape)) {
    const ConvShape& s = shape_;
    taps_outer_ = taps_are_outer(s.in_channels, s.in_pack, s.x.kernel);
    a_k_ = s.in_pack > 1 ? 1 : taps_outer_ ? (ptrdiff_t)s.in_step : s.x.dilation;
    add_all();
    gemm_find_alike(rows_.data(), rows_.size());

    const int taps = s.x.kernel * s.y.kernel * s.z.kernel;
    const int k = s.in_channels * taps;
    // Short tiles read B faster than the second-level cache delivers it: keep sections in the
    // first.
    const double pixels = (double)s.x.out * s.y.out * s.z.out / std::max<size_t>(1, rows_.size());
    const int section_k = pixels * 10 < kernels.gemm->max_rows * 7 ? 160 : kGemmSectionK;
    const int outer = taps_outer_ ? taps : s.in_channels / s.in_pack;
    num_sections_ = std::max(1, std::min(outer, (k + section_k - 1) / section_k));
    std::vector<size_t> begins;
    for (const Table& t : tables_) {
        for (size_t section = 0; section < num_sections_; section++) {
            const size_t begin = blocks_.size();
            const size_t o = partition_begin(outer, num_sections_, section);
            for (size_t i = 0; i < partition_length(outer, num_sections_, section); i++)
                add_blocks(t, (int)(o + i));
            const size_t run = s.in_pack > 1 ? s.in_pack
                               : taps_outer_ ? s.in_channels
                                             : t.x_last - t.x_first;
            begins.push_back(begin);
            sections_.push_back({nullptr, blocks_.size() - begin, run, block_step(begin, run)});
        }
    }
    for (size_t i = 0; i < sections_.size(); i++) sections_[i].blocks = blocks_.data() + begins[i];
    const size_t full =
        gemm_chunk(*kernels.gemm, (size_t)s.in_channels * s.x.stride * s.y.stride * s.z.stride,
                   num_sections_ > 1 ? s.out_channels : 0, (size_t)k * s.out_channels);
    // This is for full tiles; with shorter ones, more rows need the same space.
    chunk_ = std::max(full, (size_t)((double)full * kernels.gemm->max_rows / pixels));
}

// Adds the blocks of channel block `outer` (or, with taps outermost, of tap `outer`). A block's k
// is its place in the order of conv_weight_order.
void ConvPlan::add_blocks(const Table& t, int outer) {
    const ConvShape& s = shape_;
    const ptrdiff_t row = (ptrdiff_t)s.x.in * s.y.dilation * s.in_pack;
    const ptrdiff_t column = (ptrdiff_t)s.x.dilation * s.in_pack;
    const ptrdiff_t slice = (ptrdiff_t)s.x.in * s.y.in * s.z.dilation * s.in_pack;
    if (taps_outer_) {
        const int kx = outer % s.x.kernel, ky = outer / s.x.kernel % s.y.kernel;
        const int kz = outer / s.x.kernel / s.y.kernel;
        if (kx >= t.x_first && kx < t.x_last && ky >= t.y_first && ky < t.y_last &&
            kz >= t.z_first && kz < t.z_last)
            blocks_.push_back({kz * slice + ky * row + kx * column, (size_t)outer * s.in_channels});
        return;
    }
    const ptrdiff_t a = (ptrdiff_t)(outer * s.in_step);
    for (int kz = t.z_first; kz < t.z_last; kz++) {
        for (int ky = t.y_first; ky < t.y_last; ky++) {
            const size_t k = (((size_t)outer * s.z.kernel + kz) * s.y.kernel + ky) * s.x.kernel;
            // Planar: the taps of a kernel row are one run of k.
            const int x_last = s.in_pack == 1 ? std::min(t.x_first + 1, t.x_last) : t.x_last;
            for (int kx = t.x_first; kx < x_last; kx++)
                blocks_.push_back({a + kz * slice + ky * row + kx * column, (k + kx) * s.in_pack});
        }
    }
}

// GemmTile::block_step for the blocks from `begin` on.
ptrdiff_t ConvPlan::block_step(size_t begin, size_t block_k) const {
    if (blocks_.size() - begin < 2) return 0;
    const ptrdiff_t step = blocks_[begin + 1].a - blocks_[begin].a;
    for (size_t i = begin + 1; i < blocks_.size(); i++)
        if (blocks_[i].a - blocks_[i - 1].a != step || blocks_[i].k - blocks_[i - 1].k != block_k)
            return 0;
    return step;
}

int ConvPlan::table(const Range& x, const Range& y, const Range& z) {
    const Table t = {x.tap_first, x.tap_last, y.tap_first, y.tap_last, z.tap_first, z.tap_last};
    for (size_t i = 0; i < tables_.size(); i++) {
        const Table& u = tables_[i];
        if (u.x_first == t.x_first && u.x_last == t.x_last && u.y_first == t.y_first &&
            u.y_last == t.y_last && u.z_first == t.z_first && u.z_last == t.z_last)
            return (int)i;
    }
    tables_.push_back(t);
    return (int)tables_.size() - 1;
}

// The rows of a tile. Planar outputs are transposed as they are stored, as many rows at once as a
// register has lanes: hand-written tiles, which have few rows, take only those.
int ConvPlan::tile_rows() const {
    const GemmKernels& gemm = *kernels_.gemm;
    if (!kFewKernels && narrow_) return gemm.narrow->rows[shape_.out_channels - 1];
    const bool whole = gemm.blocks && shape_.out_pack == 1 && gemm.max_rows >= gemm.lanes;
    return whole ? gemm.max_rows / gemm.lanes * gemm.lanes : gemm.max_rows;
}

void ConvPlan::add_line(int x, int y, int z, int length, bool along_x, int table) {
    const ConvShape& s = shape_;
    const int max_rows = tile_rows();
    const int partitions = (length + max_rows - 1) / max_rows;
    const ptrdiff_t in_row = (ptrdiff_t)s.x.in * s.in_pack;
    const ptrdiff_t out_row = (ptrdiff_t)s.x.out * s.out_pack;
    for (int i = 0; i < partitions; i++) {
        const int at = (int)partition_begin(length, partitions, i);
        const int px = along_x ? x + at : x, py = along_x ? y : y + at;
        GemmRows rows;
        rows.a = (((ptrdiff_t)z * s.z.stride - s.z.before) * s.y.in + (ptrdiff_t)py * s.y.stride -
                  s.y.before) *
                     in_row +
                 ((ptrdiff_t)px * s.x.stride - s.x.before) * s.in_pack;
        rows.c = ((ptrdiff_t)z * s.y.out + py) * out_row + (ptrdiff_t)px * s.out_pack;
        rows.a_row = along_x ? (ptrdiff_t)s.x.stride * s.in_pack : s.y.stride * in_row;
        rows.c_row = along_x ? s.out_pack : out_row;
        rows.rows = (int)partition_length(length, partitions, i);
        rows.table = table;
        rows_.push_back(rows);
    }
}

// Adds a rectangle of outputs with the same taps, in lines along x unless those along y are much
// longer.
void ConvPlan::add_rectangle(const Range& x, const Range& y, int z, int t) {
    const int w = x.last - x.first, h = y.last - y.first;
    const int max_rows = kernels_.gemm->max_rows;
    const bool along_x = h * line_cost(w, max_rows) * 4 <= w * line_cost(h, max_rows) * 5;
    for (int i = 0; i < (along_x ? h : w); i++) {
        add_line(along_x ? x.first : x.first + i, along_x ? y.first + i : y.first, z,
                 along_x ? w : h, along_x, t);
    }
}

// Adds all outputs of slice z, which has the taps of `zs`.
void ConvPlan::add_slice(const std::vector<Range>& xs, const std::vector<Range>& ys,
                         const Range& zs, int z) {
    // Bands of rows, so that neighbouring lines come one after another, border columns included.
    const int max_rows = kernels_.gemm->max_rows;
    for (const Range& y : ys) {
        const int h = y.last - y.first, bands = (h + max_rows - 1) / max_rows;
        for (int b = 0; b < bands; b++) {
            Range band = y;
            band.first = y.first + (int)partition_begin(h, bands, b);
            band.last = band.first + (int)partition_length(h, bands, b);
            for (const Range& x : xs) add_rectangle(x, band, z, table(x, band, zs));
        }
    }
}

void ConvPlan::add_all() {
    const ConvShape& s = shape_;
    const std::vector<Range> xs = split_axis(s.x), ys = split_axis(s.y), zs = split_axis(s.z);
    if (is_pointwise()) {
        // The rows are contiguous: one line.
        add_line(0, 0, 0, s.x.out * s.y.out * s.z.out, true, table(xs[0], ys[0], zs[0]));
        return;
    }
    for (const Range& range : zs)
        for (int z = range.first; z < range.last; z++) add_slice(xs, ys, range, z);
}

bool ConvPlan::is_pointwise() const {
    const auto plain = [](const ConvAxis& axis) {
        return axis.kernel == 1 && axis.stride == 1 && axis.before == 0 && axis.in == axis.out;
    };
    return plain(shape_.x) && plain(shape_.y) && plain(shape_.z);
}

enum { kFewestPlanarPixels = 96 };

// Tiles must not compute too many pixels twice.
bool ConvPlan::is_planar() const {
    const ConvShape& s = shape_;
    const size_t pixels = (size_t)s.x.out * s.y.out * s.z.out;
    const size_t tile = planar_pixels(*kernels_.gemm), tiled = (pixels + tile - 1) / tile * tile;
    const GemmKernels& gemm = *kernels_.gemm;
    const bool packs = s.in_pack == 1 ? s.out_pack == 1 || planar_takes_blocks(gemm)
                                      : s.out_pack == 1 && planar_reads_blocks(gemm, s.in_pack);
    return !kFewKernels && has_planar(gemm) && packs && s.in_channels > 0 && is_pointwise() &&
           pixels >= kFewestPlanarPixels && tiled * 4 <= pixels * 5;
}

void ConvPlan::run(const float* in, const float* weights, const float* bias, float* out,
                   const float* residual, size_t residual_step, const FusedActivation& activation,
                   int threads) const {
    if (!kFewKernels && narrow_)
        return run_narrow(in, weights, bias, out, residual, residual_step, activation, threads);
    if (is_planar() && !residual) {
        const GemmKernels* const gemm = kernels_.gemm;
        const size_t pixels = (size_t)shape_.x.out * shape_.y.out * shape_.z.out;
        return run_planar(
            {gemm, gemm, pixels, (size_t)shape_.in_channels, (size_t)shape_.out_channels,
             shape_.in_step, shape_.out_step, (size_t)shape_.in_pack, (size_t)shape_.out_pack},
            in, weights, bias, out, activation, threads);
    }
    GemmProblem g = {};
    g.kernels = &kernels_;
    g.a = in;
    g.a_k = a_k_;
    g.sections = sections_.data();
    g.num_sections = num_sections_;
    g.rows = rows_.data();
    g.num_rows = rows_.size();
    g.b = weights;
    g.n = shape_.out_channels;
    g.k = (size_t)shape_.in_channels * shape_.x.kernel * shape_.y.kernel * shape_.z.kernel;
    g.bias = bias;
    g.c = out;
    g.c_pack = shape_.out_pack;
    g.c_block = (ptrdiff_t)shape_.out_step;
    g.residual = residual;
    g.residual_block = (ptrdiff_t)residual_step;
    g.activation = activation;
    g.chunk = chunk_;
    gemm_run(g, threads);
}

// The blocks of all sections of a table are contiguous.
void ConvPlan::run_narrow(const float* in, const float* weights, const float* bias, float* out,
                          const float* residual, size_t residual_step,
                          const FusedActivation& activation, int threads) const {
    const int columns = shape_.out_channels;
    const bool planar = shape_.out_pack == 1;
    parallel_for((int64_t)rows_.size(), threads, [&](int64_t i) {
        const GemmRows& rows = rows_[i];
        GemmNarrow g = {};
        g.a = in + rows.a, g.a_row = rows.a_row;
        const GemmSection* const section = &sections_[rows.table * num_sections_];
        g.blocks = section->blocks;
        for (size_t k = 0; k < num_sections_; k++) g.num_blocks += section[k].num_blocks;
        g.b = weights, g.bias = bias;
        g.c = out + rows.c, g.c_row = rows.c_row,
        g.c_column = planar ? (ptrdiff_t)shape_.out_step : 1;
        if (residual) g.residual = residual + rows.c;
        g.residual_column = planar ? (ptrdiff_t)residual_step : 1;
        g.rows = rows.rows;
        g.low = activation.low, g.high = activation.high;
        kernels_.gemm->narrow->run[columns - 1](g);
        // Each column of a line along x is one run, and so is each row of a block of channels.
        const bool runs = planar && g.c_row == 1;
        const int lines = runs ? columns : rows.rows, values = runs ? rows.rows : columns;
        const ptrdiff_t line = runs ? g.c_column : g.c_row, value = runs ? 1 : g.c_column;
        for (int i = 0; activation.pass && i < lines; i++) {
            if (value == 1) activation.finish(g.c + i * line, values);
            for (int k = 0; value != 1 && k < values; k++)
                activation.finish(g.c + i * line + k * value, 1);
        }
    });
}

}  // namespace quoll
