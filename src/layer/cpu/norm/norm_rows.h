// The loop of LayerNorm and RMSNorm.
#ifndef QUOLL_LAYER_CPU_NORM_NORM_ROWS_H
#define QUOLL_LAYER_CPU_NORM_NORM_ROWS_H

#include <string.h>

#include <algorithm>

#include "layer/common/channels.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/chunks.h"
#include "layer/cpu/common/packing.h"
#include "runtime/thread_pool.h"

namespace quoll {

// Calls f(values, run) for each run of values that are normalised together, converted to floats
// meanwhile. They come from `in`, planar like `blob`, which may be `blob` itself.
template <class F>
int for_each_run(const Mat& in, Mat& blob, int affine_size, const Option& opt, F f) {
    const size_t run = normalized_run(blob.logical_shape(), affine_size);
    const size_t size = (size_t)blob.w * blob.h * blob.d;
    if (run > size) {
        if (in.data != blob.data) blob = in.clone(opt.blob_allocator);
        return blob.empty() ? kOutOfMemory : as_one_row(blob, opt, [&](Mat& row) {
            return for_each_run(row, row, affine_size, opt, f);
        });
    }
    // Several runs of a channel at a time, converted together.
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
        const size_t from = i / parts * in.cstep + first * run;
        float* const values = storage ? floats.row(thread) : (float*)blob.data + at;
        uint16_t* const stored = (uint16_t*)blob.data + at;
        if (storage)
            storage->widen((const uint16_t*)in.data + from, values, count);
        else if (in.data != blob.data)
            memcpy(values, (const float*)in.data + from, count * sizeof(float));
        for (size_t k = 0; k < count; k += run) f(values + k, run);
        if (storage) storage->narrow(values, stored, count);
    });
    return kOk;
}

// For a layer's own blob, which becomes planar.
template <class F>
int for_each_run_inplace(const Layer& layer, Mat& blob, int affine_size, const Option& opt, F f) {
    QUOLL_RETURN_IF_ERROR(check_input(layer, blob));
    if (blob.elempack > 1) {
        Mat planar;
        convert_packing(blob, planar, 1, opt);
        if (planar.empty()) return kOutOfMemory;
        blob = planar;
    }
    return for_each_run(blob, blob, affine_size, opt, f);
}

// For a layer with a separate output.
template <class F>
int for_each_run_of(const Layer& layer, const Mat& bottom, Mat& top, int affine_size,
                    const Option& opt, F f) {
    QUOLL_RETURN_IF_ERROR(check_input(layer, bottom));
    Mat planar;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, 1, opt, &planar));
    top.create_like(planar, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    return for_each_run(planar, top, affine_size, opt, f);
}

}  // namespace quoll

#endif
