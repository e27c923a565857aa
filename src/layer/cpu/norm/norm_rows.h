// The loop of LayerNorm and RMSNorm.
#ifndef QUOLL_LAYER_CPU_NORM_NORM_ROWS_H
#define QUOLL_LAYER_CPU_NORM_NORM_ROWS_H

#include "layer/common/channels.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/packing.h"
#include "runtime/thread_pool.h"

namespace quoll {

// Checks the blob, makes it planar, and calls f(values, run) for each run of values that are
// normalised together, which are floats for as long as that takes.
template <class F>
int for_each_run(const Layer& layer, Mat& blob, int affine_size, const Option& opt, F f) {
    QUOLL_RETURN_IF_ERROR(check_input(layer, blob));
    if (blob.elempack > 1) {
        Mat planar;
        convert_packing(blob, planar, 1, opt);
        if (planar.empty()) return kOutOfMemory;
        blob = planar;
    }
    const size_t run = normalized_run(blob.logical_shape(), affine_size);
    const size_t size = (size_t)blob.w * blob.h * blob.d;
    const int64_t each = size / run, runs = each * blob.c;
    const int threads = threads_for(opt, (double)size * blob.c * 2);
    const StorageKernels* storage = storage_kernels(host_kernel_set(), blob.dtype);
    Mat floats;
    if (storage) {
        floats.create((int)run, threads, (size_t)4u, opt.workspace_allocator);
        if (floats.empty()) return kOutOfMemory;
    }
    parallel_for(runs, threads, [&](int64_t i, int thread) {
        const size_t at = i / each * blob.cstep + i % each * run;
        if (!storage) return f((float*)blob.data + at, run);
        float* values = floats.row(thread);
        uint16_t* stored = (uint16_t*)blob.data + at;
        storage->widen(stored, values, run);
        f(values, run);
        storage->narrow(values, stored, run);
    });
    return kOk;
}

}  // namespace quoll

#endif
