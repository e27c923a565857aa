#include "layer/cpu/norm/reduction_cpu.h"

#include <math.h>

#include <algorithm>
#include <numeric>

#include "layer/common/channels.h"
#include "layer/common/extremes.h"
#include "layer/common/stored.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/norm/norm.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Null: the operation is not one of sums or extremes.
NormReduce kernel_of(const NormKernels& norm, int operation) {
    switch (operation) {
        case Reduction::kSum:
        case Reduction::kMean:
        case Reduction::kLogSum:
            return norm.sum;
        case Reduction::kASum:
        case Reduction::kL1:
            return norm.sum_abs;
        case Reduction::kSumSq:
        case Reduction::kL2:
            return norm.sum_squares;
        case Reduction::kMax:
            return norm.reduce_max;
        case Reduction::kMin:
            return norm.reduce_min;
    }
    return nullptr;
}

double join(int operation, double a, double b) {
    return operation == Reduction::kMax   ? maximum(a, b)
           : operation == Reduction::kMin ? minimum(a, b)
                                          : a + b;
}

double finish(int operation, double joined, double count) {
    return operation == Reduction::kMean     ? joined / count
           : operation == Reduction::kL2     ? sqrt(joined)
           : operation == Reduction::kLogSum ? log(joined)
                                             : joined;
}

// A blob as blocks of `each` runs of `run` elements, block after block `step` elements apart.
struct Runs {
    int blocks;
    size_t each, run, step;

    // first: the first reduced axis, counted from the outermost.
    Runs(const Mat& m, int first) : blocks(m.c), each(1), run(1), step(m.cstep) {
        if (m.dims == 1) blocks = 1, step = m.w;
        if (m.dims == 2) blocks = m.h, step = m.w;
        const int inside = m.dims - std::max(first, 1);  // reduced axes within a block
        const size_t size[] = {(size_t)m.w, m.dims == 2 ? 1 : (size_t)m.h, (size_t)m.d};
        for (int i = 0; i < 3; i++) (i < inside || m.dims == 1 ? run : each) *= size[i];
    }
};

// sums[i] joined with in[i * stride]: loops that compilers make vectors of.
template <size_t kStride>
void join_row(int operation, const float* __restrict in, float* __restrict sums, size_t n,
              size_t any_stride) {
    const size_t stride = kStride ? kStride : any_stride;
    const auto each = [&](auto joined) {
        for (size_t i = 0; i < n; i++) sums[i] = joined(sums[i], in[i * stride]);
    };
    switch (operation) {
        case Reduction::kASum:
        case Reduction::kL1:
            return each([](float sum, float v) { return sum + fabsf(v); });
        case Reduction::kSumSq:
        case Reduction::kL2:
            return each([](float sum, float v) { return sum + v * v; });
        case Reduction::kMax:
            return each([](float sum, float v) { return (v > sum) | (v != v) ? v : sum; });
        case Reduction::kMin:
            return each([](float sum, float v) { return (v < sum) | (v != v) ? v : sum; });
        default:
            return each([](float sum, float v) { return sum + v; });
    }
}

void add_row(int operation, const float* in, float* sums, size_t n) {
    join_row<1>(operation, in, sums, n, 1);
}

float first_sum(int operation) {
    return operation == Reduction::kMax ? -INFINITY : operation == Reduction::kMin ? INFINITY : 0.f;
}

// Runs of at most so many elements are joined for many results at a time.
const size_t kShortRun = 8;

// out[i] = what `run` elements from in[i * run] on make, before they are finished.
void join_runs(int operation, const float* in, size_t run, float* out, size_t n) {
    std::fill(out, out + n, first_sum(operation));
    for (size_t k = 0; k < run; k++)
        run == 2 ? join_row<2>(operation, in + k, out, n, run)
                 : join_row<0>(operation, in + k, out, n, run);
}

// out[i] = f of the kPack values from in[i * kPack] on, in halves: loops of known length, which
// compilers make vectors of.
template <int kPack, class F>
void join_lanes(F f, const float* in, float* out, size_t n) {
    for (size_t i = 0; i < n; i++, in += kPack) {
        float v[kPack / 2];
        for (int j = 0; j < kPack / 2; j++) v[j] = f(in[j], in[j + kPack / 2]);
        for (int half = kPack / 4; half > 0; half /= 2)
            for (int j = 0; j < half; j++) v[j] = f(v[j], v[j + half]);
        out[i] = v[0];
    }
}

// Sums or extremes of elements of `pack` values.
void join_elements(int operation, size_t pack, const float* in, float* out, size_t n) {
    if (pack == 1) {
        std::copy_n(in, n, out);
        return;
    }
    const auto each = [&](auto f) {
        if (pack == 16) return join_lanes<16>(f, in, out, n);
        if (pack == 8) return join_lanes<8>(f, in, out, n);
        if (pack == 4) return join_lanes<4>(f, in, out, n);
        for (size_t i = 0; i < n; i++, in += pack)
            out[i] = std::accumulate(in + 1, in + pack, *in, f);
    };
    if (operation == Reduction::kMax)
        return each([](float a, float b) { return (b > a) | (b != b) ? b : a; });
    if (operation == Reduction::kMin)
        return each([](float a, float b) { return (b < a) | (b != b) ? b : a; });
    each([](float a, float b) { return a + b; });
}

// For many results, most of which are finished with the sum: in single precision where that rounds
// in the same way, which compilers vectorise.
void finish_all(int operation, double count, float coeff, float* values, size_t n) {
    const bool changes = operation == Reduction::kMean || operation == Reduction::kL2 ||
                         operation == Reduction::kLogSum;
    if (!changes && coeff == 1.f) return;
    const float length = (float)count;
    if (operation == Reduction::kMean && length == count) {
        for (size_t i = 0; i < n; i++) values[i] = values[i] / length * coeff;
        return;
    }
    for (size_t i = 0; i < n; i++) values[i] = (float)finish(operation, values[i], count) * coeff;
}

// Floats whose sums stay in the first-level cache while all rows pass.
const size_t kChunk = 2048;

}  // namespace

ReductionCpu::ReductionCpu() : kernels_(&host_kernel_set()) {
    support_packing = support_fp16_storage = support_bf16_storage = true;
}

// Sums may overflow half floats: those are left to whoever stores them, who then keeps f32.
int ReductionCpu::create_pipeline(const Option&) {
    const bool within = operation == kMean || operation == kMax || operation == kMin;
    support_fp16_storage = within && fabsf(coeff) <= 1.f;
    return kOk;
}

void ReductionCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                                std::vector<BlobLayout>* out) const {
    const int dims = in[0].shape.dims;
    unsigned mask;
    if (in[0].shape.dtype == DType::s32) return;
    if (reduced_axes(dims, &mask) != kOk || !kernel_of(*kernels_->norm, operation)) return;
    int first = 0;
    while (first < dims && !(mask >> first & 1)) first++;
    int behind = first;
    while (behind < dims && mask >> behind & 1) behind++;
    if (first > 0 && first < dims && mask >> behind == 0) (*out)[0].elempack = in[0].elempack;
}

int ReductionCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Shape> tops;
    const Shape shape = bottom_blob.logical_shape();
    QUOLL_RETURN_IF_ERROR(infer_shapes(std::vector<Shape>(1, shape), tops));
    unsigned mask;
    QUOLL_RETURN_IF_ERROR(reduced_axes(shape.dims, &mask));
    int first = 0;
    while (first < shape.dims && !(mask >> first & 1)) first++;
    const bool innermost = first < shape.dims && mask >> first == (1u << (shape.dims - first)) - 1;
    const NormReduce kernel =
        bottom_blob.dtype == DType::s32 ? nullptr : kernel_of(*kernels_->norm, operation);
    int last = first;
    while (last + 1 < shape.dims && mask >> (last + 1) & 1) last++;
    const bool one_run = first < shape.dims && mask >> (last + 1) == 0;
    const bool channels = kernel && one_run && !innermost && first == 0;
    const bool runs = kernel && innermost && first > 0;
    if (channels && kChunk % bottom_blob.elempack != 0) {  // chunks would cut elements
        Mat planar;
        QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, 1, opt, &planar));
        return forward(planar, top_blob, opt);
    }
    if (!channels && !runs && storage_kernels(*kernels_, bottom_blob.dtype))
        return reduce_stored(bottom_blob, top_blob, opt);
    if (kernel && one_run && !innermost)
        return reduce_rows(bottom_blob, first, last, tops[0], top_blob, opt);
    if (!innermost || !kernel) {
        Mat planar;
        QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, 1, opt, &planar));
        return Reduction::forward(planar, top_blob, opt);
    }
    if (first == 0) return reduce_whole(bottom_blob, kernel, tops[0], top_blob, opt);

    return reduce_runs(bottom_blob, first, kernel, tops[0], top_blob, opt);
}

// Over the axes from `first` on, which is not the outermost: run by run, as many at a time as stay
// in the cache. Stored values become floats there.
int ReductionCpu::reduce_runs(const Mat& blob, int first, NormReduce kernel, const Shape& shape,
                              Mat& top, const Option& opt) const {
    Runs runs(blob, first);
    const size_t pack = blob.elempack, row = runs.run * pack;
    top.create(shape, (int)pack, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    size_t top_step = top.dims == 1 ? 1 : top.dims == 2 ? top.w : top.cstep;
    if (runs.step == runs.each * runs.run && top_step == runs.each) {  // no gaps: one block
        runs.each *= runs.blocks;
        runs.blocks = 1;
    }
    const size_t some = std::min(runs.each, std::max<size_t>(1, kChunk / std::max<size_t>(1, row)));
    const int64_t groups = (int64_t)((runs.each + some - 1) / some);
    const int threads = threads_for(opt, (double)runs.blocks * runs.each * row);
    const StorageKernels* const storage = storage_kernels(*kernels_, blob.dtype);
    Mat memory;
    if (storage) {
        memory.create((int)(some * (row + pack)), threads, 4u, opt.workspace_allocator);
        if (memory.empty()) return kOutOfMemory;
    }
    run_tasks(runs.blocks * groups, threads, [&](int64_t task, int thread) {
        const size_t q = task / groups, i = task % groups * some, n = std::min(some, runs.each - i);
        const size_t at = (q * runs.step + i * runs.run) * pack, to = (q * top_step + i) * pack;
        const float* in = (const float*)blob.data + at;
        float* out = (float*)top.data + to;
        if (storage) {
            float* const wide = memory.row(thread);
            storage->widen((const uint16_t*)blob.data + at, wide, n * row);
            in = wide, out = wide + some * row;
        }
        if (pack == 1 && row <= kShortRun)
            join_runs(operation, in, row, out, n);
        else
            for (size_t k = 0; k < n; k++) kernel(in + k * row, row, pack, nullptr, out + k * pack);
        finish_all(operation, (double)runs.run, coeff, out, n * pack);
        if (storage) storage->narrow(out, (uint16_t*)top.data + to, n * pack);
    });
    return kOk;
}

int ReductionCpu::reduce_stored(const Mat& blob, Mat& top, const Option& opt) const {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    Mat wide, result;
    QUOLL_RETURN_IF_ERROR(widened(blob, opt, &wide));
    QUOLL_RETURN_IF_ERROR(forward(wide, result, temporary));
    narrow(result, blob.dtype, &top, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

int ReductionCpu::reduce_whole(const Mat& blob, NormReduce kernel, const Shape& shape, Mat& top,
                               const Option& opt) const {
    const Runs runs(blob, 0);
    const int threads = threads_for(opt, (double)runs.run * runs.blocks * blob.elempack);
    Mat parts(runs.blocks, 4u, opt.workspace_allocator);
    top.create(shape, 1, opt.blob_allocator);
    if (parts.empty() || top.empty()) return kOutOfMemory;
    parallel_for(runs.blocks, threads, [&](int64_t q) {
        kernel((const float*)blob.data + q * runs.step * blob.elempack, runs.run * blob.elempack, 1,
               nullptr, &parts[q]);
    });
    double joined = parts[0];
    for (int q = 1; q < runs.blocks; q++) joined = join(operation, joined, parts[q]);
    top[0] = (float)finish(operation, joined, (double)blob.logical_shape().total()) * coeff;
    return kOk;
}

// Over axes first to last, of which none is the innermost: row by row, along what lies within.
int ReductionCpu::reduce_rows(const Mat& blob, int first, int last, const Shape& shape, Mat& top,
                              const Option& opt) const {
    const Shape in = blob.logical_shape();
    const size_t pack = blob.elempack, blocks = blob.dims == 2 ? blob.h : blob.c;
    const size_t step = (blob.dims == 2 ? (size_t)blob.w : blob.cstep) * pack;
    size_t outer = 1, count = 1, inner = pack;
    for (int i = 1; i < in.dims; i++) (i < first ? outer : i <= last ? count : inner) *= in.size(i);
    const float* const data = (const float*)blob.data;
    const int threads = threads_for(opt, (double)in.total());
    const StorageKernels* const storage = storage_kernels(*kernels_, blob.dtype);
    Shape made = shape;
    if (storage) made.dtype = blob.dtype;
    top.create(made, first == 0 ? 1 : (int)pack, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    if (first > 0) {
        const size_t top_step = (top.dims == 2 ? (size_t)top.w : top.cstep) * pack;
        run_tasks((int64_t)blocks, threads, [&](int64_t q, int) {
            for (size_t o = 0; o < outer; o++) {
                float* out = (float*)top.data + q * top_step + o * inner;
                std::fill(out, out + inner, first_sum(operation));
                for (size_t c = 0; c < count; c++)
                    add_row(operation, data + q * step + (o * count + c) * inner, out, inner);
                finish_all(operation, (double)count, coeff, out, inner);
            }
        });
        return kOk;
    }
    const size_t plane = made.dims < 3 ? inner : (size_t)made.w * made.h * made.d;
    run_tasks((int64_t)((inner + kChunk - 1) / kChunk), threads, [&](int64_t chunk, int) {
        float sums[kChunk], wide[kChunk];
        const size_t at = chunk * kChunk, n = std::min(kChunk, inner - at);
        std::fill(sums, sums + n, first_sum(operation));
        for (size_t q = 0; q < blocks; q++)
            for (size_t c = 0; c < count; c++)
                if (storage) {
                    storage->widen((const uint16_t*)blob.data + q * step + c * inner + at, wide, n);
                    add_row(operation, wide, sums, n);
                } else {
                    add_row(operation, data + q * step + c * inner + at, sums, n);
                }
        const size_t results = n / pack;
        join_elements(operation, pack, sums, wide, results);
        finish_all(operation, (double)blocks * pack * count, coeff, wide, results);
        for (size_t i = 0, run; i < results; i += run) {
            const size_t result = at / pack + i, within = result % plane;
            run = std::min(results - i, plane - within);
            const size_t to = result / plane * top.cstep + within;
            if (storage)
                storage->narrow(wide + i, (uint16_t*)top.data + to, run);
            else
                std::copy_n(wide + i, run, (float*)top.data + to);
        }
    });
    return kOk;
}

Layer* create_Reduction_fast_layer() { return new ReductionCpu; }

}  // namespace quoll
