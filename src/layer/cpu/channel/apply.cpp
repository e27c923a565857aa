#include "layer/cpu/channel/apply.h"

#include <string.h>

#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/chunks.h"
#include "layer/cpu/common/packing.h"
#include "runtime/thread_pool.h"

namespace quoll {

// run(first, n, at) for parts of `count` values that stay in cache: whole periods, or, of a longer
// one, some values of it, from `at` on.
template <class Run>
static void for_each_part(size_t count, size_t period, const Run& run) {
    const size_t most = Chunks::kChunk;
    for (size_t first = 0, n; first < count; first += n) {
        const size_t at = period > most ? first % period : 0;
        n = period > most ? std::min(most, period - at)
                          : std::min(most / period * period, count - first);
        run(first, n, at);
    }
}

// A run of stored values.
static void apply_stored(const StorageKernels& storage, ChannelKernel kernel, const uint16_t* from,
                         uint16_t* to, size_t count, size_t period, const float* a,
                         const float* b) {
    float wide[Chunks::kChunk];
    for_each_part(count, period, [&](size_t first, size_t n, size_t at) {
        storage.widen(from + first, wide, n);
        kernel(wide, n, std::min(n, period), a ? a + at : nullptr, b ? b + at : nullptr);
        storage.narrow(wide, to + first, n);
    });
}

// f32 from elsewhere.
static void copy_and_apply(ChannelKernel kernel, const float* from, float* to, size_t count,
                           size_t period, const float* a, const float* b) {
    for_each_part(count, period, [&](size_t first, size_t n, size_t at) {
        memcpy(to + first, from + first, n * sizeof(float));
        kernel(to + first, n, std::min(n, period), a ? a + at : nullptr, b ? b + at : nullptr);
    });
}

void apply_to_channels(ChannelKernel kernel, const Mat& in, Mat& blob, const float* a,
                       const float* b, bool one_for_all, const Option& opt) {
    const int pack = blob.elempack;
    const int blocks = blob.dims == 1 ? 1 : blob.dims == 2 ? blob.h : blob.c;
    const size_t elements = blob.dims < 3 ? (size_t)blob.w : (size_t)blob.w * blob.h * blob.d;
    const size_t step = blob.dims < 3 ? (size_t)blob.w : blob.cstep;
    const size_t in_step = blob.dims < 3 ? (size_t)blob.w : in.cstep;
    // Each value of a 1-D blob is a channel of its own.
    const bool whole = !one_for_all && blob.dims == 1;
    const size_t advance = one_for_all ? 0 : (size_t)pack;
    const StorageKernels* storage = storage_kernels(host_kernel_set(), blob.dtype);
    const int threads = threads_for(opt, (double)elements * blocks * blob.n * pack);
    const Bands bands(blocks * blob.n, (int)elements, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int) {
        const int i = bands.item(task), q = i % blocks;
        const size_t first = bands.begin(task), count = (bands.end(task) - first) * pack;
        const size_t item = i / blocks, channel = q * advance + (whole ? first * pack : 0);
        const size_t at = (item * blob.nstep + q * step + first) * pack;
        const size_t from = (item * in.nstep + q * in_step + first) * pack;
        const float* own_a = a ? a + channel : nullptr;
        const float* own_b = b ? b + channel : nullptr;
        const size_t period = one_for_all ? 1 : whole ? count : (size_t)pack;
        if (storage)
            apply_stored(*storage, kernel, (const uint16_t*)in.data + from,
                         (uint16_t*)blob.data + at, count, period, own_a, own_b);
        else if (in.data != blob.data)
            copy_and_apply(kernel, (const float*)in.data + from, (float*)blob.data + at, count,
                           period, own_a, own_b);
        else
            kernel((float*)blob.data + at, count, period, own_a, own_b);
    });
}

}  // namespace quoll
