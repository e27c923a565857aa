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

// Images of two axes; those of three run on the reference.
class GridSampleCpu : public GridSample {
public:
    GridSampleCpu() { support_batch = true; }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    int forward_items(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const;
    void take_points(const Mat& grid, int item, size_t first, size_t n, float* x, float* y) const;

    const ResizeKernels* kernels_ = host_kernel_set().resize;
};

// The reference on each item of a batch.
int GridSampleCpu::forward_items(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                 const Option& opt) const {
    const Mat &image = bottoms[0], &grid = bottoms[1];
    if (image.n <= 1 && grid.n <= 1) return GridSample::forward(bottoms, tops, opt);
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    for (int b = 0; b < tops[0].n; b++) {
        std::vector<Mat> item(1);
        QUOLL_RETURN_IF_ERROR(
            GridSample::forward({item_of(image, b), item_of(grid, b)}, item, opt));
        Mat to = tops[0].batch(b);
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
    if (permute_fusion) {
        std::copy_n(values + first, n, x);
        std::copy_n(values + grid.cstep + first, n, y);
        return;
    }
    const size_t rows = grid.h;
    size_t channel = first / rows, within = first % rows;
    for (size_t i = 0; i < n; channel++, within = 0) {
        const size_t run = std::min(n - i, rows - within);
        const float* const from = values + channel * grid.cstep + 2 * within;
        for (size_t k = 0; k < run; k++) x[i + k] = from[2 * k], y[i + k] = from[2 * k + 1];
        i += run;
    }
}

int GridSampleCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                           const Option& opt) const {
    if (bottoms.size() != 2) return GridSample::forward(bottoms, tops, opt);  // an error
    const Mat& image = bottoms[0];
    if (image.dims != 3 || (int64_t)image.w * image.h > kGridPixels)
        return forward_items(bottoms, tops, opt);
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    Mat& top = tops[0];
    const size_t points = (size_t)top.w * top.h;
    const int64_t chunks = (int64_t)((points + kPoints - 1) / kPoints);
    const int threads = threads_for(opt, (double)top.total() * 8);
    parallel_for(chunks * top.n, threads, [&](int64_t task) {
        const int b = (int)(task / chunks);
        const size_t first = (size_t)(task % chunks) * kPoints;
        float x[kPoints], y[kPoints];
        GridPoints t;
        t.x = x, t.y = y, t.n = std::min<size_t>(kPoints, points - first);
        t.across = {image.w, padding_mode == kBorder, padding_mode == kReflection,
                    align_corner != 0, exact != 0};
        t.down = t.across;
        t.down.size = image.h;
        t.taps = sample_type == kBilinear ? 2 : sample_type == kNearest ? 1 : 4;
        t.image = values_of(image, b), t.image_step = image.cstep, t.channels = image.c;
        t.out = values_of(top, b) + first, t.out_step = top.cstep;
        take_points(bottoms[1], b, first, t.n, x, y);
        kernels_->sample_points(t);
    });
    return kOk;
}

}  // namespace

Layer* create_GridSample_fast_layer() { return new GridSampleCpu; }

}  // namespace quoll
