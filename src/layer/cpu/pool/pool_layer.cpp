#include "layer/cpu/pool/pool_layer.h"

#include <float.h>
#include <limits.h>
#include <math.h>

#include <algorithm>

#include "layer/common/scratch.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/common/pairs.h"
#include "layer/cpu/norm/norm.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

typedef Pooling::Axis Axis;
typedef Pooling::Span Span;

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

PoolingCpu::PoolingCpu(int axes) : Pooling(axes), kernels_(nullptr), f16_(nullptr) {
    support_packing = support_batch = support_fp16_storage = support_bf16_storage = true;
}

int PoolingCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Pooling::create_pipeline(opt));
    kernels_ = &host_kernel_set();
    f16_ = f16_kernels(opt);
    return kOk;
}

bool PoolingCpu::takes_pairs(const Shape& in) const {
    const int channels = axes == 1 ? in.h : in.c;
    return in.dtype == DType::f16 && f16_ && axes < 3 && channels % kF16Pack == 0;
}

int PoolingCpu::out_pack(const Shape& in, const Option& opt) const {
    if (takes_pairs(in)) return kF16Pack;
    return best_elempack(*kernels_, axes == 1 ? in.h : in.c, opt);
}

void PoolingCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in,
                              const Option& opt, std::vector<BlobLayout>* out) const {
    (*out)[0].elempack = out_pack(in[0].shape, opt);
}

// Whether the items of a batch can be taken as further channels.
static bool follow_without_gaps(const Mat& m) { return m.nstep == m.cstep * m.c; }

int PoolingCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    const ShapeList in_shapes(bottom_blob);
    const Shape shape = in_shapes[0];
    ShapeList out;
    QUOLL_RETURN_IF_ERROR(infer_shapes(*in_shapes, *out));
    const int pack = out_pack(shape, opt);
    const bool pairs = takes_pairs(shape);
    const KernelSet& kernels = pairs ? *f16_ : *kernels_;
    top_blob.create(out[0], pack, opt.blob_allocator);
    if (top_blob.empty()) return kOutOfMemory;
    Mat top = channels(top_blob);
    if (global_pooling) top.c = top_blob.w, top.cstep = 1;
    // Items that need no other elempack, which is best given to one after the other, are further
    // channels.
    const bool joined = bottom_blob.elempack == pack &&
                        follow_without_gaps(channels(bottom_blob)) && follow_without_gaps(top);
    for (int b = 0; b < (joined ? 1 : top.n); b++) {
        Mat in, to = joined ? top : top.batch(b);
        QUOLL_RETURN_IF_ERROR(
            with_elempack(joined ? bottom_blob : bottom_blob.batch(b), pack, opt, &in));
        in = channels(in);
        if (joined) in.c *= in.n, to.c *= to.n;
        if (pairs) in = as_pairs(in), to = as_pairs(to);
        QUOLL_RETURN_IF_ERROR(pool(kernels, shape, in, to, opt));
    }
    return kOk;
}

int PoolingCpu::pool(const KernelSet& kernels, const Shape& shape, const Mat& in, Mat& to,
                     const Option& opt) const {
    Axis x, y, z;
    if (!global_pooling) QUOLL_RETURN_IF_ERROR(geometry(shape, &x, &y, &z));
    const bool mean = adaptive_pooling && !is_max() && x.out == 1 && y.out == 1 && z.out == 1;
    if ((global_pooling || mean) && in.dtype != DType::s8) return global(kernels, in, to, opt);
    if (global_pooling) QUOLL_RETURN_IF_ERROR(geometry(shape, &x, &y, &z));
    return windows(kernels, in, x, y, z, to, opt);
}

int PoolingCpu::global(const KernelSet& kernels, const Mat& in, Mat& top, const Option& opt) const {
    const PoolKernels& k = *kernels.pool;
    const PoolRunKernel run = (is_max() ? k.planar_max : k.planar_average).run;
    const PoolWindowsKernel blocked = select_pool_windows(k, is_max(), in.elempack, 0, 0);
    const int size = in.w * in.h * in.d;
    const float scale = is_max() ? -INFINITY : 1.f / (float)size;
    const StorageKernels* storage = storage_kernels(*kernels_, in.dtype);
    const int pack = in.elempack;
    const int threads = threads_for(opt, (double)size * in.c * pack);
    // Several sums at a time, where windows have one.
    const NormReduce add = !is_max() && &kernels == kernels_ ? kernels.norm->sum : nullptr;
    Mat wide;  // a channel block of each thread
    const bool sums = storage && !is_max();
    if (storage && !sums) {
        wide.create(size, threads, (size_t)4u * pack, pack, opt.workspace_allocator);
        if (wide.empty()) return kOutOfMemory;
    }
    run_tasks(in.c, threads, [&](int64_t q, int thread) {
        const size_t at = q * in.cstep * pack;
        const size_t to = q * top.cstep * pack;
        if (sums) {
            storage->sum((const uint16_t*)in.data + at, (size_t)size, pack, scale,
                         (uint16_t*)top.data + to);
            return;
        }
        const float* channel = (const float*)in.data + at;
        float* out = (float*)top.data + to;
        float result[kPoolPack[kPoolPacks - 1]];
        if (storage) {
            float* own = wide.row(thread);
            storage->widen((const uint16_t*)in.data + at, own, (size_t)size * pack);
            channel = own, out = result;
        }
        if (pack == 1)
            *out = run(channel, (size_t)size, scale);
        else if (add)
            add(channel, (size_t)size * pack, pack, nullptr, out);
        else
            blocked(PoolWindows{channel, 0, 1, size, 1, out, 1, scale});
        for (int i = 0; add && pack > 1 && i < pack; i++) out[i] *= scale;
        if (storage) storage->narrow(result, (uint16_t*)top.data + to, pack);
    });
    return kOk;
}

int PoolingCpu::windows(const Mat& in, const Axis& x, const Axis& y, const Axis& z, Mat& top,
                        const Option& opt) const {
    return windows(*kernels_, in, x, y, z, top, opt);
}

int PoolingCpu::windows(const KernelSet& kernels, const Mat& in, const Axis& ax, const Axis& ay,
                        const Axis& az, Mat& top, const Option& opt) const {
    // One column, as 1-D nets have that were written in 2-D: it lies in memory as a row does.
    if (in.w == 1 && in.h > 1 && ax.out == 1 && ax.at(0).size == 1) {
        Mat row = in, out = top;
        std::swap(row.w, row.h);
        std::swap(out.w, out.h);
        return windows(kernels, row, ay, ax, az, out, opt);
    }
    if (in.dtype == DType::s8) return windows_s8(in, ax, ay, az, top, opt);
    const PoolKernels& k = *kernels.pool;
    const PoolPlanarKernels& planar = is_max() ? k.planar_max : k.planar_average;
    const int pack = in.elempack;
    const size_t in_row = (size_t)in.w * pack, slice = in_row * in.h;
    RowPooler pooler = {ax, 0, 0, planar.across, planar.across, pack, is_max()};
    whole_windows(ax, &pooler.first, &pooler.last);
    if (pack > 1) {
        pooler.border = select_pool_windows(k, is_max(), pack, 0, 0);
        pooler.inner = adaptive_pooling
                           ? pooler.border
                           : select_pool_windows(k, is_max(), pack, ax.kernel, ax.stride);
    }
    const double area =
        adaptive_pooling ? 1.0 : (double)ax.kernel * ay.kernel * std::max(1, az.kernel);
    const double values = (double)ax.out * ay.out * az.out;
    const double work = std::max((double)slice / pack * in.d, area * values) * in.c * pack;
    const int threads = threads_for(opt, work);
    if (is_max() && axes < 3 && (in.dtype == DType::bf16 || in.dtype == DType::f16))
        return max_of_stored(in, ax, ay, top, threads, opt);
    if (!kFewKernels && pack == 1 && axes < 3 && !adaptive_pooling && in.c >= 4 * threads &&
        are_side_by_side(ax, ay, in))
        return windows_of_planes(kernels, in, ax, ay, top, threads, opt);
    // The memory of each thread: joined slices, joined rows for planar data, and for a storage type
    // the channel block and a row of the output as floats.
    const StorageKernels* storage = storage_kernels(*kernels_, in.dtype);
    const size_t channel_floats = storage ? slice * in.d : 0, out_row = (size_t)ax.out * pack;
    const size_t slice_floats = axes == 3 ? slice : 0;
    const size_t floats = slice_floats + in_row + channel_floats + (storage ? out_row : 0);
    Mat scratch;
    if (axes == 3 || pack == 1 || storage) {
        if (floats <= INT_MAX) scratch.create((int)floats, threads, 4u, opt.workspace_allocator);
        if (scratch.empty()) return kOutOfMemory;
    }
    Bands bands(top.c * az.out, ay.out, threads);
    if (axes == 3) bands.per_item = 1;  // every band would have to join the slices
    run_tasks(bands.count(), threads, [&](int64_t task, int thread) {
        const int q = bands.item(task) / az.out, z = bands.item(task) % az.out;
        float* memory = scratch.empty() ? nullptr : scratch.row(thread);
        const Span depth = az.at(z);
        const size_t at = q * in.cstep * pack + depth.from * slice;
        const float* from = (const float*)in.data + at;
        if (storage) {
            float* wide = memory + slice_floats + in_row;
            const Span low = ay.at(bands.begin(task)), high = ay.at(bands.end(task) - 1);
            // The rows of this band; all where it begins or ends with windows of nothing.
            const bool whole = depth.size != 1 || low.size < 1 || high.size < 1;
            const int first = whole ? 0 : low.from;
            const int last = whole ? in.h : high.from + high.size;
            const size_t more = std::max(0, depth.size - 1) * slice;
            storage->widen((const uint16_t*)in.data + at + first * in_row, wide + first * in_row,
                           (last - first) * in_row + more);
            from = wide;
        }
        if (depth.size > 1) {
            planar.rows(from, slice, depth.size, memory, slice);
            from = memory;
        }
        const size_t to = q * top.cstep * pack + (size_t)z * ay.out * out_row;
        float* out = (float*)top.data + to;
        for (int y = bands.begin(task), end = bands.end(task); y < end; y++) {
            const Span span = ay.at(y);
            PoolWindows w = {};
            w.in = from + (size_t)span.from * in_row;
            w.row_step = in_row, w.rows = depth.size > 0 ? span.size : 0;
            if (pack == 1) {
                float* row = memory + slice_floats;
                planar.rows(w.in, w.row_step, w.rows, row, in_row);
                w.in = row, w.rows = 1;
            }
            float* row = storage ? memory + floats - out_row : out + y * out_row;
            pooler.run(w, span, depth, row);
            if (storage) storage->narrow(row, (uint16_t*)top.data + to + y * out_row, out_row);
        }
    });
    return kOk;
}

// Whether the windows of all rows of a channel follow each other as those of one row do.
bool PoolingCpu::are_side_by_side(const Axis& x, const Axis& y, const Mat& in) {
    const auto tiles = [](const Axis& axis) {
        if (axis.out == 0 || axis.kernel != axis.stride || axis.at(0).from != 0) return false;
        for (const int i : {0, axis.out - 1})
            if (axis.at(i).size != axis.kernel || axis.at(i).counted != axis.kernel) return false;
        return true;
    };
    return tiles(x) && tiles(y) && (int64_t)x.out * x.kernel == in.w;
}

// Of small maps, of which a row takes less time than what goes with it. The same bits.
int PoolingCpu::windows_of_planes(const KernelSet& kernels, const Mat& in, const Axis& ax,
                                  const Axis& ay, Mat& top, int threads, const Option& opt) const {
    const PoolPlanarKernels& planar =
        is_max() ? kernels.pool->planar_max : kernels.pool->planar_average;
    const StorageKernels* storage = storage_kernels(*kernels_, in.dtype);
    const size_t out = (size_t)ax.out * ay.out, rows = (size_t)in.w * ay.out;
    const size_t wide = storage ? rows * ay.kernel : 0, floats = wide + rows + (storage ? out : 0);
    Mat scratch;
    if (floats <= INT_MAX) scratch.create((int)floats, threads, 4u, opt.workspace_allocator);
    if (scratch.empty()) return kOutOfMemory;
    PoolWindows w = {};
    w.rows = 1, w.columns = w.stride = ax.kernel, w.count = (int)out;
    w.scale = scale_of(ax.at(0), ay.at(0), {0, 1, 1}, is_max());
    run_tasks(top.c, threads, [&](int64_t q, int thread) {
        float* const memory = scratch.row(thread);
        const float* from = (const float*)in.data + q * in.cstep;
        if (storage) {
            storage->widen((const uint16_t*)in.data + q * in.cstep, memory, wide);
            from = memory;
        }
        float* const joined = memory + wide;
        for (int y = 0; y < ay.out; y++)
            planar.rows(from + (size_t)y * ay.kernel * in.w, in.w, ay.kernel, joined + y * in.w,
                        in.w);
        PoolWindows of_channel = w;
        of_channel.in = joined;
        of_channel.out = storage ? joined + rows : (float*)top.data + q * top.cstep;
        planar.across(of_channel);
        if (storage) storage->narrow(of_channel.out, (uint16_t*)top.data + q * top.cstep, out);
    });
    return kOk;
}

int PoolingCpu::max_of_stored(const Mat& in, const Axis& ax, const Axis& ay, Mat& top, int threads,
                              const Option& opt) const {
    const PoolKernels& k = *kernels_->pool;
    const int pack = in.elempack;
    const size_t in_row = (size_t)in.w * pack, out_row = (size_t)ax.out * pack;
    int x_first, x_last;
    whole_windows(ax, &x_first, &x_last);
    const float least = -FLT_MAX;  // as scale_of() has it for windows without values
    uint16_t none;
    storage_kernels(*kernels_, in.dtype)->narrow(&least, &none, 1);
    Mat keys(in.w * pack, threads, 2u, opt.workspace_allocator);
    if (keys.empty()) return kOutOfMemory;
    const Bands bands(top.c, ay.out, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int thread) {
        const int q = bands.item(task);
        const uint16_t* from = (const uint16_t*)in.data + q * in.cstep * pack;
        uint16_t* to = (uint16_t*)top.data + q * top.cstep * pack;
        int16_t* row = keys.row<int16_t>(thread);
        PoolKeyWindows w = {};
        w.stride = ax.stride, w.pack = pack;
        w.nans = in.dtype == DType::bf16 ? kBf16Nans : kF16Nans;
        for (int y = bands.begin(task), end = bands.end(task); y < end; y++) {
            const Span span = ay.at(y);
            if (span.size > 0)
                k.key_rows(from + span.from * in_row, in_row, span.size, w.nans, row, in_row);
            for (int x = 0; x < ax.out; x += w.count) {
                const Span columns = ax.at(x);
                w.in = row + (size_t)columns.from * pack, w.columns = columns.size;
                w.out = to + y * out_row + (size_t)x * pack;
                w.count = x == x_first && x_first < x_last ? x_last - x_first : 1;
                if (span.size > 0 && columns.size > 0)
                    k.key_across(w);
                else
                    std::fill_n(w.out, w.count * pack, none);
            }
        }
    });
    return kOk;
}

}  // namespace quoll
