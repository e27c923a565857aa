// The loop of LayerNorm and RMSNorm.
#ifndef QUOLL_LAYER_CPU_NORM_NORM_ROWS_H
#define QUOLL_LAYER_CPU_NORM_NORM_ROWS_H

#include <algorithm>

#include "layer/common/channels.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/chunks.h"
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
    // Some runs of a channel at a time, which conversions take at once.
    const size_t each = size / run;
    const size_t some = std::max<size_t>(1, std::min<size_t>(Chunks::kChunk / run, each));
    const int64_t parts = (each + some - 1) / some;
    const int threads = threads_for(opt, (double)size * blob.c * 2);
    const StorageKernels* storage = storage_kernels(host_kernel_set(), blob.dtype);
    Mat floats;
    if (storage) {
        floats.create((int)(run * some), threads, (size_t)4u, opt.workspace_allocator);
        if (floats.empty()) return kOutOfMemory;
    }
    parallel_for(parts * blob.c, threads, [&](int64_t i, int thread) {
        const size_t first = i % parts * some, count = std::min(some, each - first) * run;
        const size_t at = i / parts * blob.cstep + first * run;
        float* const values = storage ? floats.row(thread) : (float*)blob.data + at;
        uint16_t* const stored = (uint16_t*)blob.data + at;
        if (storage) storage->widen(stored, values, count);
        for (size_t k = 0; k < count; k += run) f(values + k, run);
        if (storage) storage->narrow(values, stored, count);
    });
    return kOk;
}

}  // namespace quoll

#endif
