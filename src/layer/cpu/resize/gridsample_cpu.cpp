#include <algorithm>

#include "layer/cpu/common/packing.h"
#include "layer/cpu/resize/resize.h"
#include "layer/vision/gridsample.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Points that are sampled together.
enum { kPoints = 256 };

// Item b of a batch, or what all items share.
Mat item_of(const Mat& m, int b) { return m.n > 1 ? m.batch(b) : m; }
float* values_of(const Mat& m, int b) { return (float*)m.data + (m.n > 1 ? b * m.nstep : 0); }

// A blob of four axes as items of three, which share its memory.
Mat items_of(const Mat& m) {
    Mat items = m;
    if (m.dims != 4 || m.n != 1) return items;
    items.dims = 3, items.n = m.c, items.nstep = m.cstep;
    items.c = m.d, items.d = 1, items.cstep = (size_t)m.w * m.h;
    return items;
}

// Images of two axes; those of three run on the reference.
class GridSampleCpu : public GridSample {
public:
    GridSampleCpu() { support_batch = true; }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    int forward_items(const Mat& image, const Mat& grid, Mat& top, const Option& opt) const;
    int scaled_item(const Mat& grid, int item, const Option& opt, Mat* scaled) const;
    GridPoints points_of(const Mat& image, int item) const;
    void sample_groups(const Mat& image, const Mat& grid, const Mat& top, const Option& opt) const;
    void take_points(const Mat& grid, int item, size_t first, size_t n, float* x, float* y) const;

    const ResizeKernels* kernels_ = host_kernel_set().resize;
};

// An item of a grid with its points where they are.
int GridSampleCpu::scaled_item(const Mat& grid, int item, const Option& opt, Mat* scaled) const {
    *scaled = item_of(grid, item);
    if (!around.scales()) return kOk;
    Mat made(grid.w, grid.h, grid.c, 4u, 1, opt.workspace_allocator);
    if (made.empty()) return kOutOfMemory;
    float x[kPoints], y[kPoints];
    for (int q = 0; q < grid.c; q++)
        for (int first = 0; first < grid.h; first += kPoints) {
            const int n = std::min<int>(kPoints, grid.h - first);
            take_points(grid, item, (size_t)q * grid.h + first, n, x, y);
            float* const to = made.channel(q).row(first);
            for (int i = 0; i < n; i++) to[2 * i] = x[i], to[2 * i + 1] = y[i];
        }
    *scaled = made;
    return kOk;
}

// The reference on each item of a batch.
int GridSampleCpu::forward_items(const Mat& image, const Mat& grid, Mat& top,
                                 const Option& opt) const {
    GridSample plain;
    plain.take_fields(*this);
    plain.around = Around();
    plain.type = type, plain.name = name;
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    for (int b = 0; b < top.n; b++) {
        std::vector<Mat> item(1);
        Mat points;
        QUOLL_RETURN_IF_ERROR(scaled_item(grid, b, opt, &points));
        QUOLL_RETURN_IF_ERROR(plain.forward({item_of(image, b), points}, item, temporary));
        Mat to = item_of(top, b);
        for (int q = 0; q < to.c; q++)
            std::copy_n((const float*)item[0].channel(q), (size_t)to.w * to.h * to.d,
                        (float*)to.channel(q));
    }
    return kOk;
}

// Coordinates of points first, first + 1, ... of an item.
void GridSampleCpu::take_points(const Mat& grid, int item, size_t first, size_t n, float* x,
                                float* y) const {
    const float* const values = values_of(grid, item);
    const float *const s = around.scale, *const o = around.offset;
    if (permute_fusion) {
        std::copy_n(values + first, n, x);
        std::copy_n(values + grid.cstep + first, n, y);
        return;
    }
    const size_t rows = grid.h;
    // Rows of a grid without gaps follow each other.
    const size_t together = grid.cstep == 2 * rows ? rows * grid.c : rows;
    size_t channel = first / together, within = first % together;
    for (size_t i = 0; i < n; channel++, within = 0) {
        const size_t run = std::min(n - i, together - within);
        const float* const from = values + channel * grid.cstep + 2 * within;
        for (size_t k = 0; k < run; k++) {
            x[i + k] = from[2 * k] * s[0] + o[0];
            y[i + k] = from[2 * k + 1] * s[1] + o[1];
        }
        i += run;
    }
}

int GridSampleCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                           const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const Mat& image = bottoms[0];
    const Mat grid = around.grid_items ? items_of(bottoms[1]) : bottoms[1];
    Mat top = around.joins_items ? items_of(tops[0]) : tops[0];
    if (image.dims != 3 || (int64_t)image.w * image.h > kGridPixels)
        return forward_items(image, grid, top, opt);
    const size_t points = (size_t)top.w * top.h;
    if (image.c == 1 && top.n > 1 && 2 * points <= kPoints &&
        (int64_t)image.nstep * kPoints <= kGridPixels) {
        sample_groups(image, grid, top, opt);
        return kOk;
    }
    const int64_t chunks = (int64_t)((points + kPoints - 1) / kPoints);
    const int threads = threads_for(opt, (double)top.total() * 8);
    parallel_for(chunks * top.n, threads, [&](int64_t task) {
        const int b = (int)(task / chunks);
        const size_t first = (size_t)(task % chunks) * kPoints;
        float x[kPoints], y[kPoints];
        GridPoints t = points_of(image, b);
        t.x = x, t.y = y, t.n = std::min<size_t>(kPoints, points - first);
        t.out = values_of(top, b) + first, t.out_step = top.cstep;
        take_points(grid, b, first, t.n, x, y);
        kernels_->sample_points(t);
    });
    return kOk;
}

// Without points and output.
GridPoints GridSampleCpu::points_of(const Mat& image, int item) const {
    GridPoints t = {};
    t.across = {image.w, padding_mode == kBorder, padding_mode == kReflection, align_corner != 0,
                exact != 0};
    t.down = t.across;
    t.down.size = image.h;
    t.taps = sample_type == kBilinear ? 2 : sample_type == kNearest ? 1 : 4;
    t.image = values_of(image, item), t.image_step = image.cstep, t.channels = image.c;
    return t;
}

// Of few points each, from one channel: items together, as many as a call takes points.
void GridSampleCpu::sample_groups(const Mat& image, const Mat& grid, const Mat& top,
                                  const Option& opt) const {
    const size_t points = (size_t)top.w * top.h;
    const int some = (int)(kPoints / points), threads = threads_for(opt, (double)top.total() * 8);
    parallel_for((top.n + some - 1) / some, threads, [&](int64_t task) {
        const int b = (int)task * some, count = std::min(some, top.n - b);
        float x[kPoints], y[kPoints], begin[kPoints], out[kPoints];
        for (int i = 0; i < count; i++) {
            take_points(grid, b + i, 0, points, x + i * points, y + i * points);
            std::fill_n(begin + i * points, points,
                        image.n > 1 ? (float)((size_t)i * image.nstep) : 0.f);
        }
        GridPoints t = points_of(image, b);
        t.x = x, t.y = y, t.begin = begin, t.n = count * points;
        t.out = out;
        kernels_->sample_points(t);
        for (int i = 0; i < count; i++)
            std::copy_n(out + i * points, points, values_of(top, b + i));
    });
}

}  // namespace

Layer* create_GridSample_fast_layer() { return new GridSampleCpu; }

}  // namespace quoll
