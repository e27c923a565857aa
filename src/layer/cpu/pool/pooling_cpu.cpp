#include "layer/cpu/pool/pooling_cpu.h"

#include <algorithm>

#include "cpu.h"

namespace quoll {

namespace {

// The part of a window that has pixels, and how many positions an average counts.
struct Span {
    int from, size;  // input positions
    int counted;
};

// The windows of one axis.
class Spans {
public:
    // Of a sliding window. Averages take no pixels outside the counted positions.
    Spans(const Pooling::Axis& axis, bool max)
        : axis_(axis),
          low_(max ? axis.before : std::max(axis.before, axis.counted_first)),
          high_(max ? axis.before + axis.in : std::min(axis.before + axis.in, axis.counted_last)) {
        const int64_t first = low_ > 0 ? ((int64_t)low_ + axis.stride - 1) / axis.stride : 0;
        const int64_t last =
            high_ >= axis.kernel ? ((int64_t)high_ - axis.kernel) / axis.stride + 1 : 0;
        first_ = (int)std::min<int64_t>(axis.out, first);
        last_ = (int)std::max<int64_t>(first_, std::min<int64_t>(axis.out, last));
    }
    // Adaptive: `out` windows of almost the same size.
    Spans(int in, int out)
        : axis_{in, out, 0, 1, 0, 0, 0}, low_(0), high_(0), first_(0), last_(0) {}

    int stride() const { return axis_.stride; }
    // Outputs first <= i < last have the whole window.
    int first() const { return first_; }
    int last() const { return last_; }

    Span at(int i) const {
        if (axis_.kernel == 0) {
            const int from = (int)((int64_t)axis_.in * i / axis_.out);
            const int to = (int)(((int64_t)axis_.in * (i + 1) + axis_.out - 1) / axis_.out);
            return Span{from, to - from, to - from};
        }
        const int64_t start = (int64_t)i * axis_.stride, end = start + axis_.kernel;
        const int64_t from = std::max<int64_t>(start, low_), to = std::min<int64_t>(end, high_);
        const int64_t counted = std::min<int64_t>(end, axis_.counted_last) -
                                std::max<int64_t>(start, axis_.counted_first);
        if (to <= from) return Span{0, 0, (int)std::max<int64_t>(0, counted)};
        return Span{(int)(from - axis_.before), (int)(to - from), (int)counted};
    }

private:
    const Pooling::Axis axis_;
    int low_, high_;  // padded positions whose pixels count
    int first_, last_;
};

float scale_of(const Span& x, const Span& y) {
    const double area = (double)x.counted * y.counted;
    return area > 0 ? (float)(1 / area) : 0.f;
}

// One output row from the input rows at w.in (of column 0).
struct RowPooler {
    const Spans& xs;
    PoolWindowsKernel inner, border;
    int pack, out_w;

    void run(PoolWindows w, const Span& y, float* out) const {
        const float* in = w.in;
        const auto pool = [&](PoolWindowsKernel kernel, int x, int count) {
            const Span span = xs.at(x);
            w.in = in + (size_t)span.from * pack;
            w.columns = span.size, w.stride = xs.stride();
            w.out = out + (size_t)x * pack, w.count = count;
            w.scale = scale_of(span, y);
            kernel(w);
        };
        for (int x = 0; x < xs.first(); x++) pool(border, x, 1);
        if (xs.first() < xs.last()) pool(inner, xs.first(), xs.last() - xs.first());
        for (int x = xs.last(); x < out_w; x++) pool(border, x, 1);
    }
};

}  // namespace

PoolingCpu::PoolingCpu() : kernels_(nullptr) { support_packing = true; }

int PoolingCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Pooling::create_pipeline(opt));
    kernels_ = &host_kernel_set();
    return kOk;
}

int PoolingCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Shape> out;
    const Shape shape = bottom_blob.logical_shape();
    QUOLL_RETURN_IF_ERROR(infer_shapes(std::vector<Shape>(1, shape), out));
    const int pack = best_elempack(*kernels_, shape.c, opt);
    Mat in;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, pack, opt, &in));
    top_blob.create(out[0], pack, opt.blob_allocator);
    if (top_blob.empty()) return kOutOfMemory;
    if (!global_pooling) return windows(in, top_blob, opt);
    global(in, top_blob, opt);
    return kOk;
}

void PoolingCpu::global(const Mat& in, Mat& top, const Option& opt) const {
    const PoolKernels& k = *kernels_->pool;
    const PoolRunKernel run = (is_max() ? k.planar_max : k.planar_average).run;
    const PoolWindowsKernel blocked = select_pool_windows(k, is_max(), in.elempack, 0, 0);
    const int size = in.w * in.h;
    const int threads = threads_for(opt, (double)size * in.c * in.elempack);
#pragma omp parallel for num_threads(threads)
    for (int q = 0; q < in.c; q++) {
        const float* channel = (const float*)in.data + q * in.cstep * in.elempack;
        float* out = (float*)top.data + (size_t)q * in.elempack;
        if (in.elempack == 1) {
            *out = run(channel, (size_t)size, 1.f / (float)size);
        } else {
            blocked(PoolWindows{channel, 0, 1, size, 1, out, 1, 1.f / (float)size});
        }
    }
}

int PoolingCpu::windows(const Mat& in, Mat& top, const Option& opt) const {
    Axis ax, ay;
    if (!adaptive_pooling) QUOLL_RETURN_IF_ERROR(window_axes(in.w, in.h, &ax, &ay));
    const Spans xs = adaptive_pooling ? Spans(in.w, top.w) : Spans(ax, is_max());
    const Spans ys = adaptive_pooling ? Spans(in.h, top.h) : Spans(ay, is_max());
    const PoolKernels& k = *kernels_->pool;
    const PoolPlanarKernels& planar = is_max() ? k.planar_max : k.planar_average;
    const int pack = in.elempack, in_w = in.w;
    RowPooler pooler = {xs, planar.across, planar.across, pack, top.w};
    if (pack > 1) {
        pooler.border = select_pool_windows(k, is_max(), pack, 0, 0);
        pooler.inner = adaptive_pooling
                           ? pooler.border
                           : select_pool_windows(k, is_max(), pack, kernel_w, stride_w);
    }
    const double area = adaptive_pooling ? 1.0 : (double)kernel_w * kernel_h;
    const double work = std::max((double)in.w * in.h, area * top.w * top.h) * in.c * pack;
    const int threads = threads_for(opt, work);
    Mat scratch;  // of each thread: an input row
    if (pack == 1) {
        scratch.create(in.w, threads, 4u, opt.workspace_allocator);
        if (scratch.empty()) return kOutOfMemory;
    }
    const Bands bands(top.c, top.h, threads);
#pragma omp parallel for num_threads(threads)
    for (int task = 0; task < top.c * bands.per_item; task++) {
        const int q = bands.item(task);
        const float* channel = (const float*)in.data + q * in.cstep * pack;
        float* out = (float*)top.data + q * top.cstep * pack;
        for (int y = bands.begin(task); y < bands.end(task); y++) {
            const Span span = ys.at(y);
            PoolWindows w = {};
            w.in = channel + (size_t)span.from * in_w * pack;
            w.row_step = (size_t)in_w * pack, w.rows = span.size;
            if (pack == 1) {
                float* row = scratch.row(get_omp_thread_num());
                planar.rows(w.in, w.row_step, w.rows, row, (size_t)in_w);
                w.in = row, w.rows = 1;
            }
            pooler.run(w, span, out + (size_t)y * top.w * pack);
        }
    }
    return kOk;
}

Layer* create_Pooling_fast_layer() { return new PoolingCpu; }

}  // namespace quoll
