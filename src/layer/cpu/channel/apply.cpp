#include "layer/cpu/channel/apply.h"

#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/chunks.h"
#include "layer/cpu/common/packing.h"
#include "runtime/thread_pool.h"

namespace quoll {

// A run of stored values, in chunks that stay in cache. whole: each value is a channel of its own.
static void apply_stored(const StorageKernels& storage, ChannelKernel kernel, uint16_t* values,
                         size_t count, size_t period, bool whole, const float* a, const float* b) {
    float wide[Chunks::kChunk];
    for (size_t first = 0; first < count; first += Chunks::kChunk) {
        const size_t n = std::min<size_t>(Chunks::kChunk, count - first), at = whole ? first : 0;
        storage.widen(values + first, wide, n);
        kernel(wide, n, whole ? n : period, a ? a + at : nullptr, b ? b + at : nullptr);
        storage.narrow(wide, values + first, n);
    }
}

void apply_to_channels(ChannelKernel kernel, Mat& blob, const float* a, const float* b,
                       bool one_for_all, const Option& opt) {
    const int pack = blob.elempack;
    const int blocks = blob.dims == 1 ? 1 : blob.dims == 2 ? blob.h : blob.c;
    const size_t elements = blob.dims < 3 ? (size_t)blob.w : (size_t)blob.w * blob.h * blob.d;
    const size_t step = blob.dims < 3 ? (size_t)blob.w : blob.cstep;
    // Each value of a 1-D blob is a channel of its own.
    const size_t period = one_for_all ? 1 : blob.dims == 1 ? elements * pack : (size_t)pack;
    const size_t advance = one_for_all ? 0 : (size_t)pack;
    const bool whole = !one_for_all && blob.dims == 1;
    const StorageKernels* storage = storage_kernels(host_kernel_set(), blob.dtype);
    const int threads = threads_for(opt, (double)elements * blocks * blob.n * pack);
    parallel_for(blocks * blob.n, threads, [&](int64_t i) {
        const int q = i % blocks;
        const size_t at = ((size_t)(i / blocks) * blob.nstep + q * step) * pack;
        const float* own_a = a ? a + q * advance : nullptr;
        const float* own_b = b ? b + q * advance : nullptr;
        if (storage)
            apply_stored(*storage, kernel, (uint16_t*)blob.data + at, elements * pack, period,
                         whole, own_a, own_b);
        else
            kernel((float*)blob.data + at, elements * pack, period, own_a, own_b);
    });
}

}  // namespace quoll
