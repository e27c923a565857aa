// TilePlan's tiles of outputs whose windows have the same taps inside the input.
#include <math.h>

#include <algorithm>

#include "layer/cpu/gemm/tile_plan.h"

namespace quoll {

// Where no kernels take such tiles, no code for them is kept.
#if defined(__x86_64__) || defined(__i386__)

namespace {

int taps_of(const ConvPlan::Range& r) { return r.tap_last - r.tap_first; }
int outputs_of(const ConvPlan::Range& r) { return r.last - r.first; }
bool reads_nothing(const ConvPlan::Range& r) { return taps_of(r) == 0; }

// Of the buffer, which holds the whole input beside a panel's live taps.
enum { kMostClipped = 640 * 1024 };
// Of all lists of steps.
enum { kMostSteps = 1 << 18 };

double all_taps(const std::vector<ConvPlan::Range>& ranges) {
    double taps = 0;
    for (const ConvPlan::Range& r : ranges) taps += taps_of(r);
    return taps;
}

}  // namespace

// Takes tiles of outputs with the same taps where these are far less work than `usual`: tiles of 16
// rows, times their taps.
void TilePlan::clip(double usual) {
    const TileShape& s = shape_;
    const double bytes = (double)s.x.in * s.y.in * channel_blocks_ * unit_.position_bytes;
    if (s.x.stride != 1 || s.y.stride != 1 || s.x.kernel * s.y.kernel == 1 || bytes > kMostClipped)
        return;
    xs_ = ConvPlan::split_axis(s.x), ys_ = ConvPlan::split_axis(s.y);
    int rows = 0;
    double best = 0.8 * usual;
    for (int r = kUnitRows; r >= 4; r--) {
        const double cost = clipped_cost(r);
        if (cost >= best) continue;
        best = cost, rows = r;
    }
    if (!rows || all_taps(xs_) * all_taps(ys_) * (double)channel_blocks_ > kMostSteps ||
        std::any_of(xs_.begin(), xs_.end(), reads_nothing) ||
        std::any_of(ys_.begin(), ys_.end(), reads_nothing)) {
        xs_.clear(), ys_.clear();
        return;
    }
    tile_rows_ = rows;
    pitch_ = s.x.in;
    pair_tiles_ = 1;
}

double TilePlan::clipped_cost(int rows) const {
    // Of a panel's weights there is a little for each tile, however few its rows are.
    double across = 0, down = 0;
    for (const ConvPlan::Range& x : xs_)
        across += (double)((outputs_of(x) + rows - 1) / rows) * taps_of(x) * row_cost(rows + 1);
    for (const ConvPlan::Range& y : ys_) down += (double)outputs_of(y) * taps_of(y);
    return across * down;
}

void TilePlan::add_clipped_tiles() {
    const TileShape& s = shape_;
    double taps = 0;
    int index = 0;
    for (const ConvPlan::Range& ys : ys_)
        for (const ConvPlan::Range& xs : xs_) {
            for (int y = ys.first; y < ys.last; y++)
                for (int x = xs.first; x < xs.last; x += tile_rows_) {
                    starts_.push_back(y * pitch_ + x);
                    step_of_.push_back(index);
                    taps += taps_of(ys) * taps_of(xs);
                    for (int i = x; i < x + tile_rows_; i++)
                        places_.push_back(i < xs.last ? (int32_t)(y * s.out_row + i * s.out_pixel)
                                                      : -1);
                }
            index++;
        }
    taps_ = taps / (double)starts_.size();
}

void TilePlan::add_clipped_steps() {
    const ConvAxis &x = shape_.x, &y = shape_.y;
    for (const ConvPlan::Range& ys : ys_)
        for (const ConvPlan::Range& xs : xs_) {
            Steps steps;
            for (int c = 0; c < (int)channel_blocks_; c++)
                for (int ky = ys.tap_first; ky < ys.tap_last; ky++)
                    for (int kx = xs.tap_first; kx < xs.tap_last; kx++) {
                        const ptrdiff_t position =
                            (ptrdiff_t)(ky * y.dilation - y.before) * pitch_ + kx * x.dilation -
                            x.before;
                        steps.a.push_back(c * (ptrdiff_t)(plane_length_ * unit_.position_bytes) +
                                          position * (ptrdiff_t)position_step());
                        steps.b.push_back((c * y.kernel + ky) * x.kernel + kx);
                    }
            steps_.push_back(std::move(steps));
        }
}

// The input as it is.
void TilePlan::pack_clipped(const Work& work, char* to) const {
    const size_t pixels = (size_t)shape_.x.in * shape_.y.in;
    for (int y = 0; y < shape_.y.in; y++)
        pack_pixels(work, 0, y * shape_.in_row, shape_.x.in,
                    to + (size_t)y * pitch_ * position_step(), nullptr);
    for (size_t c = 0; c < channel_blocks_; c++)
        work.pad(to + c * plane_length_ * unit_.position_bytes + pixels * position_step(),
                 plane_length_ - pixels);
}

#else

void TilePlan::clip(double) {}
void TilePlan::add_clipped_tiles() {}
void TilePlan::add_clipped_steps() {}
void TilePlan::pack_clipped(const Work&, char*) const {}

#endif

}  // namespace quoll
