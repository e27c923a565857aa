#include "layer/cpu/pool/pool_layer.h"

#include <float.h>
#include <limits.h>
#include <math.h>

#include <algorithm>

#include "cpu.h"

namespace quoll {

namespace {

typedef PoolingOperator::Axis Axis;
typedef PoolingOperator::Span Span;

// For maxima the least result: windows without values give what ncnn has there.
float scale_of(const Span& x, const Span& y, const Span& z, bool max) {
    if (max) return x.size > 0 && y.size > 0 && z.size > 0 ? -INFINITY : -FLT_MAX;
    const double volume = (double)x.counted * y.counted * z.counted;
    return volume > 0 ? (float)(1 / volume) : 0.f;
}

// Outputs first <= i < last of an axis have the whole window.
void whole_windows(const Axis& axis, int* first, int* last) {
    const int64_t low = axis.first > 0 ? ((int64_t)axis.first + axis.stride - 1) / axis.stride : 0;
    const int64_t high =
        axis.last >= axis.kernel ? ((int64_t)axis.last - axis.kernel) / axis.stride + 1 : 0;
    *first = (int)std::min<int64_t>(axis.out, low);
    *last = (int)std::max<int64_t>(*first, std::min<int64_t>(axis.out, high));
    if (axis.kernel == 0) *first = *last = 0;  // adaptive windows differ
}

// One output row from the input rows at w.in (of column 0).
struct RowPooler {
    const Axis& axis;
    int first, last;  // whole_windows
    PoolWindowsKernel inner, border;
    int pack;
    bool max;

    void run(PoolWindows w, const Span& y, const Span& z, float* out) const {
        const float* in = w.in;
        const auto pool = [&](PoolWindowsKernel kernel, int x, int count) {
            const Span span = axis.at(x);
            w.in = in + (size_t)span.from * pack;
            w.columns = span.size, w.stride = axis.stride;
            w.out = out + (size_t)x * pack, w.count = count;
            w.scale = scale_of(span, y, z, max);
            kernel(w);
        };
        for (int x = 0; x < first; x++) pool(border, x, 1);
        if (first < last) pool(inner, first, last - first);
        for (int x = last; x < axis.out; x++) pool(border, x, 1);
    }
};

}  // namespace

PoolingCpu::PoolingCpu(int axes) : PoolingOperator(axes), kernels_(nullptr) {
    support_packing = true;
}

int PoolingCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(PoolingOperator::create_pipeline(opt));
    kernels_ = &host_kernel_set();
    return kOk;
}

int PoolingCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Shape> out;
    const Shape shape = bottom_blob.logical_shape();
    QUOLL_RETURN_IF_ERROR(infer_shapes(std::vector<Shape>(1, shape), out));
    const int pack = best_elempack(*kernels_, axes == 1 ? shape.h : shape.c, opt);
    Mat in;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, pack, opt, &in));
    in = channels(in);
    top_blob.create(out[0], pack, opt.blob_allocator);
    if (top_blob.empty()) return kOutOfMemory;
    if (global_pooling) {
        global(in, top_blob, opt);
        return kOk;
    }
    Axis x, y, z;
    QUOLL_RETURN_IF_ERROR(geometry(shape, &x, &y, &z));
    Mat top = channels(top_blob);
    return windows(in, x, y, z, top, opt);
}

void PoolingCpu::global(const Mat& in, Mat& top, const Option& opt) const {
    const PoolKernels& k = *kernels_->pool;
    const PoolRunKernel run = (is_max() ? k.planar_max : k.planar_average).run;
    const PoolWindowsKernel blocked = select_pool_windows(k, is_max(), in.elempack, 0, 0);
    const int size = in.w * in.h * in.d;
    const float scale = is_max() ? -INFINITY : 1.f / (float)size;
    const int threads = threads_for(opt, (double)size * in.c * in.elempack);
#pragma omp parallel for num_threads(threads)
    for (int q = 0; q < in.c; q++) {
        const float* channel = (const float*)in.data + q * in.cstep * in.elempack;
        float* out = (float*)top.data + (size_t)q * in.elempack;
        if (in.elempack == 1) {
            *out = run(channel, (size_t)size, scale);
        } else {
            blocked(PoolWindows{channel, 0, 1, size, 1, out, 1, scale});
        }
    }
}

int PoolingCpu::windows(const Mat& in, const Axis& ax, const Axis& ay, const Axis& az, Mat& top,
                        const Option& opt) const {
    const PoolKernels& k = *kernels_->pool;
    const PoolPlanarKernels& planar = is_max() ? k.planar_max : k.planar_average;
    const int pack = in.elempack;
    const size_t in_row = (size_t)in.w * pack, slice = in_row * in.h;
    RowPooler pooler = {ax, 0, 0, planar.across, planar.across, pack, is_max()};
    whole_windows(ax, &pooler.first, &pooler.last);
    if (pack > 1) {
        pooler.border = select_pool_windows(k, is_max(), pack, 0, 0);
        pooler.inner = adaptive_pooling
                           ? pooler.border
                           : select_pool_windows(k, is_max(), pack, kernel_w, stride_w);
    }
    const double area =
        adaptive_pooling ? 1.0 : (double)ax.kernel * ay.kernel * std::max(1, az.kernel);
    const double values = (double)ax.out * ay.out * az.out;
    const double work = std::max((double)slice / pack * in.d, area * values) * in.c * pack;
    const int threads = threads_for(opt, work);
    // Of each thread: slices that became one, and for planar data rows that did.
    const size_t slice_floats = axes == 3 ? slice : 0, floats = slice_floats + in_row;
    Mat scratch;
    if (axes == 3 || pack == 1) {
        if (floats <= INT_MAX) scratch.create((int)floats, threads, 4u, opt.workspace_allocator);
        if (scratch.empty()) return kOutOfMemory;
    }
    Bands bands(top.c * az.out, ay.out, threads);
    if (axes == 3) bands.per_item = 1;  // every band would have to join the slices
#pragma omp parallel for num_threads(threads)
    for (int task = 0; task < top.c * az.out * bands.per_item; task++) {
        const int q = bands.item(task) / az.out, z = bands.item(task) % az.out;
        float* memory = scratch.empty() ? nullptr : scratch.row(get_omp_thread_num());
        const Span depth = az.at(z);
        const float* from = (const float*)in.data + q * in.cstep * pack + depth.from * slice;
        if (depth.size > 1) {
            planar.rows(from, slice, depth.size, memory, slice);
            from = memory;
        }
        float* out = (float*)top.data + (q * top.cstep + (size_t)z * ay.out * ax.out) * pack;
        for (int y = bands.begin(task); y < bands.end(task); y++) {
            const Span span = ay.at(y);
            PoolWindows w = {};
            w.in = from + (size_t)span.from * in_row;
            w.row_step = in_row, w.rows = depth.size > 0 ? span.size : 0;
            if (pack == 1) {
                float* row = memory + slice_floats;
                planar.rows(w.in, w.row_step, w.rows, row, in_row);
                w.in = row, w.rows = 1;
            }
            pooler.run(w, span, depth, out + (size_t)y * ax.out * pack);
        }
    }
    return kOk;
}

}  // namespace quoll
