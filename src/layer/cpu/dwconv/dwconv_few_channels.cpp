// Blocks of channels that are narrower than a register: several outputs to a register, on planes of
// such blocks.
#include <limits.h>

#include <algorithm>

#include "layer/cpu/cast/storage.h"
#include "layer/cpu/dwconv/dwconv_layer.h"
#include "layer/cpu/dwconv/phase_planes.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Rows of outputs whose planes and sums stay in a first-level cache, at most `most`.
int planes_rows(const ConvGeometry& g, int pack, int most) {
    const PhasePlanes one(g, pack, 1), two(g, pack, 2);
    const size_t budget = (size_t)(24 << 10) / sizeof(float);
    const size_t more = two.floats() - one.floats() + one.row_floats();
    const size_t fixed = one.floats() + one.row_floats();
    if (fixed >= budget) return 1;
    return (int)std::min<size_t>(most, 1 + (budget - fixed) / more);
}

// Common to all bands of outputs, and the memory of the threads that compute them.
struct PlanesRun {
    const ConvGeometry& g;
    const PhasePlanes& planes;
    const DwconvKernels& kernels;
    const StorageKernels* storage;  // null: blobs of f32
    const FusedActivation& activation;
    const float *weight, *bias;
    int pack, lanes;
    int rows;  // that are made at a time
    float pad_value;
    Mat in = {}, channels = {};
    Mat memory = {};    // of each thread: planes, rows of another type as f32, sums
    Mat pointers = {};  // of each thread: the plane of each tap
    size_t wides = 0;   // floats of those rows

    // 0, kOutOfMemory, or 1 where sizes exceed what a Mat holds.
    int create(int threads, const Option& opt) {
        const size_t in_row = (size_t)g.x.in * pack, out_row = (size_t)g.x.out * pack;
        const int64_t under = (int64_t)(rows - 1) * g.y.stride + g.y.extent();
        const size_t wide_rows = (size_t)std::min<int64_t>(g.y.in, under);
        wides = storage ? std::max(wide_rows * in_row, rows * out_row) : 0;
        const size_t floats = planes.floats() + wides + planes.row_floats() * rows;
        if (floats > INT_MAX || (size_t)g.maxk() * sizeof(float*) > INT_MAX) return 1;
        memory.create((int)floats, threads, 4u, opt.workspace_allocator);
        pointers.create(g.maxk() * (int)sizeof(float*), threads, 1u, opt.workspace_allocator);
        if (memory.empty() || pointers.empty()) return kOutOfMemory;
        for (int thread = 0; thread < threads; thread++)
            for (int k = 0; k < g.maxk(); k++)
                pointers.row<const float*>(thread)[k] =
                    planes.tap(memory.row(thread), k / g.x.kernel, k % g.x.kernel);
        return kOk;
    }

    // Rows begin <= y < end of the outputs of block q.
    void make_band(int q, int begin, int end, int thread) {
        const size_t in_row = (size_t)g.x.in * pack, out_row = (size_t)g.x.out * pack;
        float* const data = memory.row(thread);
        float* const wide = data + planes.floats();
        DwconvPlanes run;
        run.out = wide + wides;
        run.taps = pointers.row<const float*>(thread), run.num_taps = g.maxk();
        run.weight = weight + (size_t)q * g.maxk() * lanes;
        run.bias = bias + (size_t)q * lanes;
        run.low = activation.low, run.high = activation.high;
        const size_t size = dtype_size(in.dtype);
        const char* const channel = (const char*)in.data + q * in.cstep * pack * size;
        char* const out = (char*)channels.data + q * channels.cstep * pack * size;
        for (int y = begin; y < end; y += rows) {
            const int count = std::min(rows, end - y);
            int first, last;
            planes.rows_under(y, y + count, &first, &last);
            const float* from = (const float*)channel + first * in_row;
            if (storage) {
                storage->widen((const uint16_t*)channel + first * in_row, wide,
                               (last - first) * in_row);
                from = wide;
            }
            planes.load(kernels.pack_rows, from, y, y + count, pad_value, data);
            run.count = (count - 1) * planes.row_floats() + out_row;
            kernels.planes(run);
            activation.finish(run.out, run.count);
            float* to = storage ? wide : (float*)out + y * out_row;
            kernels.rows(run.out, planes.row_floats(), count, out_row, to);
            if (storage) storage->narrow(wide, (uint16_t*)out + y * out_row, count * out_row);
        }
    }
};

}  // namespace

int ConvolutionDepthWiseCpu::forward_few_channels(const Mat& bottom, const ConvGeometry& g,
                                                  Mat& top, const Option& opt) const {
    const int threads = threads_for(opt, work_of(g));
    const Bands bands(g.num_output / pack_, g.y.out, threads);
    const int rows = planes_rows(g, pack_, (g.y.out + bands.per_item - 1) / bands.per_item);
    const PhasePlanes planes(g, pack_, rows);
    if (!planes.sensible()) return kUnsuitable;
    PlanesRun run = {g,
                     planes,
                     *kernels_->dwconv,
                     storage_kernels(*kernels_, bottom.dtype),
                     activation_,
                     (const float*)packed_weight_,
                     (const float*)packed_bias_,
                     pack_,
                     kernels_->lanes,
                     rows,
                     pad_value};
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, pack_, opt, &run.in));
    run.in = conv_channels(*this, run.in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, bottom.dtype, pack_, opt, &top, &run.channels));
    const int status = run.create(threads, opt);
    if (status != kOk) return status < 0 ? status : (int)kUnsuitable;
    run_tasks(bands.count(), threads, [&](int64_t task, int thread) {
        run.make_band(bands.item(task), bands.begin(task), bands.end(task), thread);
    });
    return kOk;
}

}  // namespace quoll
