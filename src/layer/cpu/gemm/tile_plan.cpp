#include "layer/cpu/gemm/tile_plan.h"

#include <limits.h>
#include <math.h>

#include <algorithm>

#include "quoll/cpu.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

bool same(const ConvAxis& a, const ConvAxis& b) {
    return a.in == b.in && a.out == b.out && a.kernel == b.kernel && a.stride == b.stride &&
           a.dilation == b.dilation && a.before == b.before;
}

size_t divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

enum { kPairSums = kUnitTiles * kUnitRows * kUnitColumns };

}  // namespace

bool operator==(const TileShape& a, const TileShape& b) {
    return same(a.x, b.x) && same(a.y, b.y) && a.in_channels == b.in_channels &&
           a.out_channels == b.out_channels && a.in_pack == b.in_pack && a.in_pixel == b.in_pixel &&
           a.in_row == b.in_row && a.in_block == b.in_block && a.out_pack == b.out_pack &&
           a.out_pixel == b.out_pixel && a.out_row == b.out_row && a.out_block == b.out_block &&
           a.reduced_in == b.reduced_in && a.reduced_out == b.reduced_out && a.items == b.items &&
           a.in_item == b.in_item && a.out_item == b.out_item;
}

TileShape tile_shape(const ConvShape& conv) {
    TileShape s = {};
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

TileShape tile_shape(size_t m, size_t n, size_t k, ptrdiff_t a_row, ptrdiff_t c_row) {
    TileShape s = {};
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

bool has_step_windows(const TileShape& s, int pixel, int step_channels) {
    return s.x.kernel > 1 && s.x.dilation == 1 && s.in_channels <= pixel &&
           s.x.kernel * pixel <= step_channels;
}

TileShape shape_of_windows(const TileShape& s, int pixel) {
    TileShape windows = s;
    windows.x = {s.x.out, s.x.out, 1, 1, 1, 0};
    windows.in_channels = windows.in_pack = s.x.kernel * pixel;
    windows.in_pixel = 1;
    windows.in_row = s.x.out;
    windows.in_block = 0;
    return windows;
}

// ---------------------------------------------------------------- axes

TilePlan::Axis::Axis(const ConvAxis& a) : axis(a), shift((a.kernel - 1) * a.dilation / a.stride) {
    for (int tap = 0; tap < a.kernel; tap++) {
        const int phase = tap * a.dilation % a.stride;
        if (std::find(phases.begin(), phases.end(), phase) == phases.end()) phases.push_back(phase);
    }
    length = a.out + shift;
}

TilePlan::Axis TilePlan::Axis::of_taps(const ConvAxis& a) {
    Axis axis(a);
    axis.phases.clear();
    for (int tap = 0; tap < a.kernel; tap++) axis.phases.push_back(tap * a.dilation);
    axis.shift = 0;
    axis.length = a.out;
    return axis;
}

int TilePlan::Axis::plane(int tap) const {
    const int at = tap * axis.dilation, phase = shift ? at % axis.stride : at;
    return (int)(std::find(phases.begin(), phases.end(), phase) - phases.begin());
}

int TilePlan::Axis::position(int tap) const {
    return (tap * axis.dilation - phases[plane(tap)]) / axis.stride;
}

void TilePlan::Axis::inside(int phase, int* begin, int* end) const {
    const int first = axis.before - phase, last = axis.in + axis.before - phase;
    const int s = axis.stride;
    *begin = std::min(length, first > 0 ? (first + s - 1) / s : 0);
    *end = std::max(*begin, std::min(length, last > 0 ? (last + s - 1) / s : 0));
}

bool TilePlan::is_supported(const TileShape& s) {
    const auto length = [](const ConvAxis& a) {
        return a.out + (double)(a.kernel - 1) * a.dilation / a.stride + 1;
    };
    const double positions = length(s.x) * length(s.y) * s.items;
    const double out =
        (double)s.x.out * s.out_pixel + (double)s.y.out * s.out_row + (double)s.items * s.out_item;
    const double taps = (double)s.x.kernel * s.y.kernel;
    // Offsets in gathers and in the list of places are 32 bits wide, as are positions.
    const double most = INT_MAX / 2;
    return s.x.out > 0 && s.y.out > 0 && positions < most / 16 && out < most &&
           (double)s.in_block * 16 < most && taps <= 1024 && taps * s.in_channels < 1 << 22;
}

// ---------------------------------------------------------------- the plan

TilePlan::TilePlan(const Unit& unit, const TileShape& shape, int threads)
    : unit_(unit),
      shape_(shape),
      x_(shape.x),
      y_(shape.y),
      wanted_threads_(threads),
      threads_(std::max(1, threads)),
      pitch_(x_.length),
      item_rows_(y_.length),
      pair_tiles_(kUnitTiles),
      taps_((double)steps_across() * shape.y.kernel),
      channel_blocks_(divide_up(shape.in_channels, unit.step_channels)),
      planes_(x_.phases.size() * y_.phases.size()),
      panels_(divide_up(shape.out_channels, kUnitColumns)),
      parts_(1),
      part_blocks_(channel_blocks_),
      panel_bytes_(channel_blocks_ * steps_across() * shape.y.kernel * unit.step_bytes) {
    if (shape.x.stride == 1) {
        // The padding at the end of a row is that at the beginning of the next.
        int begin, end;
        x_.inside(0, &begin, &end);
        if (begin < end) pitch_ -= std::min(std::min(begin, x_.length - end), x_.shift);
    }
    choose_tiles();
    choose_parts();
    if (!clipped() && rows_are_far()) {
        y_ = Axis::of_taps(shape.y);
        planes_ = x_.phases.size() * y_.phases.size();
    }
    choose_blocks();
    add_steps();
}

TilePlan::~TilePlan() = default;

// Of a tile multiplication with that many rows, relative to 16.
double TilePlan::row_cost(int rows) const {
    if (unit_.row_lanes)
        return (double)divide_up(rows, unit_.row_lanes) * unit_.row_lanes / kUnitRows;
    if (unit_.on_vectors) return (double)rows / kUnitRows;
    return unit_.costs->tile_rows[std::max(0, rows - 7)];
}

void TilePlan::choose_tiles() {
    const size_t n = shape_.items;
    struct {
        Run run;
        size_t count, length;
    } const runs[] = {{Run::kItem, n, item_run()},
                      {Run::kRow, n * shape_.y.out, row_run()},
                      {Run::kBatch, 1, (n - 1) * item_positions() + item_run()}};
    double best = INFINITY;
    Run best_run = Run::kItem;
    for (int rows = kUnitRows; rows >= 7; rows--)
        for (const auto& r : runs) {
            // Items that are not laid out lie apart.
            if (r.run == Run::kBatch && (n == 1 || unit_.in_place())) continue;
            const double cost = (double)(divide_up(r.length, rows) * r.count) * row_cost(rows);
            if (cost >= best) continue;
            best = cost, best_run = r.run, tile_rows_ = rows;
        }
    if (unit_.clips && n == 1) clip(best * taps_);
    if (clipped())
        add_clipped_tiles();
    else
        add_tiles(best_run);
}

// ---------------------------------------------------------------- blocks

void TilePlan::add_tiles(Run run) {
    const size_t item = item_positions(), n = shape_.items;
    if (run == Run::kBatch) return add_run(0, (n - 1) * item + item_run());
    for (size_t i = 0; i < n; i++) {
        if (run == Run::kItem) add_run(i * item, item_run());
        for (int y = 0; run == Run::kRow && y < shape_.y.out; y++)
            add_run(i * item + (size_t)y * pitch_, row_run());
        // Pairs that are read as one lie within an item: the last one's second tile is empty.
        if (n > 1 && unit_.in_place() && starts_.size() % kUnitTiles) add_run((i + 1) * item, 0);
    }
}

// Tiles of so many positions; one, if there are none.
void TilePlan::add_run(size_t first, size_t length) {
    size_t p = first;
    do {
        starts_.push_back((int32_t)p);
        for (const size_t end = p + tile_rows_; p < end; p++)
            places_.push_back(p < first + length ? (int32_t)place(p) : -1);
    } while (p < first + length);
}

// Of a position's output; negative: there is none.
ptrdiff_t TilePlan::place(size_t position) const {
    const ptrdiff_t line = position / pitch_, x = position % pitch_;
    const ptrdiff_t item = line / item_rows_, y = line % item_rows_;
    if (y >= shape_.y.out || x >= shape_.x.out) return -1;
    return item * shape_.out_item + y * shape_.out_row + x * shape_.out_pixel;
}

// Positions that the largest of blocks of so many pairs of tiles reads.
size_t TilePlan::block_positions(size_t pairs) const {
    if (clipped()) return (size_t)shape_.x.in * shape_.y.in + tile_rows_;
    const size_t tiles = std::min(starts_.size(), pairs * kUnitTiles);
    size_t most = 0;
    for (size_t t = 0; t < starts_.size(); t += kUnitTiles) {
        const size_t last = std::min(t + tiles, starts_.size()) - 1;
        most = std::max<size_t>(most, starts_[last] - starts_[t]);
    }
    return most + tile_rows_ + (size_t)y_.shift * pitch_ + x_.shift;
}

double TilePlan::weight_cycles(double bytes, int threads) const {
    // From beyond a core's own caches; one core hides a part of it behind its work.
    return bytes / (threads > 1 ? unit_.costs->memory_bytes : 2 * unit_.costs->memory_bytes);
}

// Laying out and multiplying of a block, which has so many positions, by some panels.
double TilePlan::task_cycles(size_t pairs, size_t positions, size_t panels) const {
    const double steps = (double)channel_blocks_ * taps_;
    const double tile =
        steps * unit_.step_cycles * row_cost(tile_rows_) + (double)parts_ * unit_.finish_cycles;
    const size_t tiles = std::min(pairs * pair_tiles_, starts_.size());
    const size_t halves = std::min(2 * panels, divide_up(shape_.out_channels, kUnitColumns / 2));
    const double values =
        unit_.in_place() ? 0 : (double)positions * planes_ * channel_blocks_ * unit_.step_channels;
    // What other threads have made comes from their caches.
    const double bytes = threads_ > 1 ? shape_.reduced_in ? 2 : 4 : 0;
    const double value = unit_.value_cycles + bytes / unit_.costs->memory_bytes;
    return values * value + (double)tiles * halves * tile +
           (double)tiles * tile_rows_ * panels * unit_.row_cycles;
}

// Parts where a panel would take so much of the second-level cache that little is left for what is
// read and fetched between one pair of tiles and the next.
void TilePlan::choose_parts() {
    enum { kMostPanel = 640 * 1024, kPartPanel = 320 * 1024 };
    if (!unit_.adds_parts || clipped() || starts_.size() <= kUnitTiles ||
        panel_bytes_ <= kMostPanel)
        return;
    const size_t parts = std::min(channel_blocks_, divide_up(panel_bytes_, kPartPanel));
    part_blocks_ = divide_up(channel_blocks_, parts);
    parts_ = divide_up(channel_blocks_, part_blocks_);
}

// Bytes of a block's buffer that stay in the second-level cache beside a panel.
size_t TilePlan::buffer_budget() const {
    const size_t cache = (size_t)unit_.costs->tile_cache, least = 640 * 1024;
    const size_t part = part_panel_bytes();
    // The next panel and the sums of parts go through the cache, too.
    const size_t panel = parts_ > 1 ? 2 * part : part;
    const size_t budget = std::max(least, cache > panel ? cache - panel : 0);
    // Weights that stay there too may be read once a block; what a smaller buffer leaves of the
    // cache keeps the blobs.
    return panel * panels_ < 256 * 1024 ? std::min<size_t>(budget, 384 * 1024) : budget;
}

// Whether fewer values are laid out if each row of a window is a plane.
bool TilePlan::rows_are_far() const {
    const double position = (double)part_blocks_ * planes_ * unit_.position_bytes;
    const double halo = (double)y_.shift * pitch_;
    const double outputs =
        std::min((double)buffer_budget() / position - halo, (double)shape_.y.out * pitch_);
    const double rows = (double)y_.phases.size();
    return halo > 0 && (outputs <= 0 || rows * (outputs + halo) > shape_.y.kernel * outputs);
}

// Blocks that keep to the budget, and as many tasks as keep the threads busy.
void TilePlan::choose_blocks() {
    const size_t pairs = pairs_of(starts_.size());
    const size_t position = part_blocks_ * planes_ * unit_.position_bytes;
    const size_t cache = (size_t)unit_.costs->tile_cache;
    const size_t panel = panel_bytes_, budget = buffer_budget();
    const size_t halo = (size_t)y_.shift * pitch_ + x_.shift;
    const size_t room = budget / position > halo ? (budget / position - halo) / tile_rows_ : 0;
    const size_t least = clipped() ? 1 : divide_up(pairs, std::max<size_t>(1, room / kUnitTiles));
    const size_t most_tasks = threads_ > 1 ? std::min<size_t>(threads_ * 4, 256) : 1;
    const size_t most = clipped() ? 1 : std::min(pairs, least + most_tasks - 1);
    cycles_ = INFINITY;
    for (size_t blocks = least; blocks <= most; blocks++) {
        const size_t block_pairs = divide_up(pairs, blocks);
        const size_t positions = block_positions(block_pairs);
        for (size_t groups = 1; groups <= std::min(panels_, most_tasks); groups++) {
            const size_t share = divide_up(panels_, groups);
            const double turns = (double)divide_up(blocks * groups, threads_);
            const double bytes = (double)(panel * share);
            // Few weights stay in the cache from one block to the next.
            const double reads = bytes < cache / 2 ? 1 : turns;
            const double time = turns * task_cycles(block_pairs, positions, share) +
                                reads * weight_cycles(bytes, threads_);
            if (time >= cycles_) continue;
            cycles_ = time;
            blocks_ = blocks;
            groups_ = groups;
        }
    }
    threads_ = (int)std::min<size_t>(threads_, blocks_ * groups_);
    plane_length_ = block_positions(divide_up(pairs, blocks_));
    // One more, which kernels may read.
    if (unit_.row_lanes) plane_length_ = divide_up(plane_length_ + 1, 16) * 16;
    scales_at_ = unit_.in_place() ? (size_t)kUnitRowBytes : plane_length_ * position;
    // A row's last step may go beyond its positions.
    if (unit_.row_steps) scales_at_ = divide_up(scales_at_ + kUnitRowBytes, 64) * 64;
    sums_at_ =
        scales_at_ + (unit_.scaled_pixels ? divide_up(plane_length_ * sizeof(float), 64) * 64 : 0);
    const size_t sums = divide_up(pairs, blocks_) * divide_up(panels_, groups_) * kPairSums;
    share_ = sums_at_ + (parts_ > 1 ? sums * sizeof(float) : 0);
}

void TilePlan::add_steps() {
    if (clipped()) return add_clipped_steps();
    const ConvAxis& y = shape_.y;
    std::vector<ptrdiff_t> steps;
    for (size_t c = 0; c < part_blocks_; c++)
        for (int ky = 0; ky < y.kernel; ky++)
            for (int s = 0; s < steps_across(); s++) {
                const int kx = unit_.row_steps ? 0 : s;
                const size_t plane = y_.plane(ky) * x_.phases.size() + x_.plane(kx);
                const size_t position = (size_t)y_.position(ky) * pitch_ + x_.position(kx);
                const size_t within = unit_.row_steps ? s * unit_.row_step_bytes : 0;
                const ptrdiff_t laid_out =
                    (ptrdiff_t)((c * planes_ + plane) * plane_length_ * unit_.position_bytes +
                                position * position_step() + within);
                steps.push_back(unit_.in_place() ? (ptrdiff_t)c * unit_.channels_bytes : laid_out);
            }
    steps_.push_back({std::move(steps), {}});
}

// ---------------------------------------------------------------- laying out

void TilePlan::block_tiles(size_t block, size_t* first, size_t* last) const {
    const size_t pairs = pairs_of(starts_.size());
    *first = partition_begin(pairs, blocks_, block) * pair_tiles_;
    *last =
        std::min(*first + partition_length(pairs, blocks_, block) * pair_tiles_, starts_.size());
}

void TilePlan::Work::scale(ptrdiff_t, size_t, float*) const {}

// All channels of a part, of pixels of a row.
void TilePlan::pack_pixels(const Work& work, size_t part, ptrdiff_t at, size_t pixels, char* to,
                           float* scales) const {
    const TileShape& s = shape_;
    if (unit_.scaled_pixels) work.scale(at, pixels, scales);
    for (size_t c = 0; c < part_length(part); c++) {
        const int channel = (int)(part_begin(part) + c) * unit_.step_channels;
        work.pack_a(at + (ptrdiff_t)(channel / s.in_pack) * s.in_block, channel, pixels, scales,
                    to + c * planes_ * plane_length_ * unit_.position_bytes);
    }
}

// Long rows of a matrix are read along, so many at a time: what processors fetch by themselves are
// the next lines, not those of the next row.
enum { kRows = 16 };

// Positions q0 <= q < q1 of a row of one plane, all channels of a part.
void TilePlan::pack_line(const Work& work, size_t part, int line, int plane_y, int plane_x, int q0,
                         int q1, char* to, float* scales) const {
    const TileShape& s = shape_;
    // Behind the last item there is padding.
    const int item = std::min(line / item_rows_, s.items - 1), y = line - item * item_rows_;
    int top, bottom, left, right;
    y_.inside(y_.phases[plane_y], &top, &bottom);
    x_.inside(x_.phases[plane_x], &left, &right);
    if (y < top || y >= bottom) left = right = q1;
    left = std::min(std::max(left, q0), q1);
    right = std::min(std::max(right, left), q1);
    if (unit_.scaled_pixels) std::fill(scales, scales + (q1 - q0), 0.f);
    for (size_t c = 0; c < part_length(part) && (left > q0 || q1 > right); c++) {
        char* at = to + c * planes_ * plane_length_ * unit_.position_bytes;
        work.pad(at, left - q0);
        work.pad(at + (right - q0) * position_step(), q1 - right);
    }
    const ptrdiff_t row = (ptrdiff_t)y * s.y.stride + y_.phases[plane_y] - s.y.before;
    const int most = unit_.scaled_pixels ? unit_.scaled_pixels : has_rows() ? kRows : q1 - q0;
    for (int q = left; q < right; q += most) {
        const ptrdiff_t column = (ptrdiff_t)q * s.x.stride + x_.phases[plane_x] - s.x.before;
        pack_pixels(work, part, item * s.in_item + row * s.in_row + column * s.in_pixel,
                    std::min(most, right - q), to + (q - q0) * position_step(), scales + (q - q0));
    }
}

void TilePlan::pack_block(const Work& work, size_t block, size_t part, char* to) const {
    if (clipped()) return pack_clipped(work, to);
    size_t first, last;
    block_tiles(block, &first, &last);
    const int begin = starts_[first];
    const int end = starts_[last - 1] + tile_rows_ + y_.shift * pitch_ + x_.shift;
    for (size_t plane = 0; plane < planes_; plane++) {
        const int plane_y = (int)(plane / x_.phases.size());
        const int plane_x = (int)(plane % x_.phases.size());
        char* plane_to = to + plane * plane_length_ * unit_.position_bytes;
        for (int p = begin; p < end;) {
            const int y = p / pitch_, stop = std::min(end, (y + 1) * pitch_);
            pack_line(work, part, y, plane_y, plane_x, p - y * pitch_, stop - y * pitch_,
                      plane_to + (size_t)(p - begin) * position_step(), scales(to) + (p - begin));
            p = stop;
        }
    }
}

// ---------------------------------------------------------------- multiplying

// Panels so long that their begin has left the second-level cache when it is read are fetched by a
// single pair as it goes, so many bytes ahead.
enum { kLongPanel = 512 * 1024, kAhead = 32 * 1024 };

// Where a part of a panel begins: a single-vector one is half as large.
const char* TilePlan::part_panel(const char* weights, size_t panel, size_t part) const {
    const bool full = (size_t)shape_.out_channels > panel * kUnitColumns + kUnitColumns / 2;
    const size_t before = panel_bytes_ / channel_blocks_ * part_begin(part);
    return weights + panel * panel_bytes_ + (full ? before : before / 2);
}

TilePlan::Pairs::Pairs(const TilePlan& plan, const Task& task, const char* weights, size_t panel)
    : plan_(plan), a_(task.a), b_(plan.part_panel(weights, panel, task.part)), sums_(nullptr) {
    plan.block_tiles(task.block, &first_, &last_);
    size_ = plan.pairs_of(last_ - first_);
    const size_t length = plan.part_length(task.part);
    num_steps_ = length * plan.steps_across() * plan.shape_.y.kernel;
    bytes_ = plan.panel_bytes_ / plan.channel_blocks_ * length;
    next_ = b_ + plan.panel_bytes_;
    bool fetch = (panel + 2) * kUnitColumns <= (size_t)plan.shape_.out_channels;
    if (plan.parts_ > 1) {
        const size_t index = (panel - task.first) * size_;
        sums_ = (float*)(task.a + plan.sums_at_) + index * kPairSums;
        if (panel + 1 == task.last && !plan.is_last(task)) {
            next_ = plan.part_panel(weights, task.first, task.part + 1);
            fetch = plan.part_length(task.part + 1) == length;
        }
    }
    // Weights that do not stay in the cache are fetched while the panel before them is at work.
    const size_t stays = plan.unit_.on_vectors ? 256 * 1024 : 1024 * 1024;
    fetch = fetch && plan.panel_bytes_ * plan.panels_ > stays;
    fetched_ = fetch ? divide_up(bytes_ / size_, 64) * 64 : 0;
}

TilePlan::Pair TilePlan::Pairs::operator[](size_t i) const {
    const TilePlan& p = plan_;
    const size_t t = first_ + i * p.pair_tiles_;
    Pair pair;
    pair.tiles = (int)std::min(p.pair_tiles_, last_ - t);
    pair.rows = pair.tiles * p.tile_rows_;
    pair.places = p.places_.data() + t * p.tile_rows_;
    TileOperands& o = pair.operands;
    o.a_row = (ptrdiff_t)p.position_step();
    o.a_word = p.word_step();
    const int32_t begin = p.clipped() || p.unit_.in_place() ? 0 : p.starts_[first_];
    o.a = a_ + (p.starts_[t] - begin) * o.a_row;
    o.a_tile = pair.tiles > 1 ? (p.starts_[t + 1] - p.starts_[t]) * o.a_row : 0;
    o.tile_rows = p.tile_rows_;
    if (p.unit_.in_place()) {  // what lies behind the last row may not be read
        const int pixels = (int)p.item_positions();
        int end = pixels;
        if (p.shape_.items > 1) {
            const int item = p.starts_[t] / pixels;
            const ptrdiff_t value = p.unit_.pixel_bytes / p.shape_.in_pixel;
            o.a += item * (p.shape_.in_item * value - pixels * o.a_row);
            end += item * pixels;
        }
        pair.rows = o.tile_rows = std::min(pair.rows, end - p.starts_[t]);
        pair.tiles = 1;
    }
    const Steps& steps = p.steps_[p.clipped() ? p.step_of_[t] : 0];
    o.steps = steps.a.data();
    o.num_steps = sums_ ? num_steps_ : steps.a.size();
    pair.sums = sums_ ? sums_ + i * kPairSums : nullptr;
    pair.b_steps = steps.b.empty() ? nullptr : steps.b.data();
    o.b = b_;
    o.next_bytes = std::min(fetched_, bytes_ - std::min(bytes_, i * fetched_));
    o.next_in_order = size_ == 1 && bytes_ > kLongPanel;
    o.next = !o.next_bytes ? nullptr : o.next_in_order ? b_ + kAhead : next_ + i * fetched_;
    return pair;
}

void TilePlan::run(const Work& work, float* workspace) const {
    run_region((int64_t)(blocks_ * groups_), threads_, [&](Claims& claims) {
        char* own = (char*)workspace + claims.thread() * share_;
        size_t held = blocks_;  // the block that `own` holds, if all of it
        work.begin(tile_rows_);
        for (int64_t t, end; claims.next(&t, &end);)
            for (; t < end; t++) {
                const size_t block = t / groups_, group = t % groups_;
                const size_t p0 = partition_begin(panels_, groups_, group);
                const size_t p1 = p0 + partition_length(panels_, groups_, group);
                if (unit_.in_place()) own = const_cast<char*>(work.input());
                for (size_t part = 0; part < parts_; part++) {
                    if (!unit_.in_place() && (block != held || parts_ > 1))
                        pack_block(work, block, part, own);
                    work.multiply({own, block, part, p0, p1});
                }
                held = block;
            }
        work.end();
    });
}

}  // namespace quoll
