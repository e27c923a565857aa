#include "layer/cpu/unary/unary_layer.h"

#include <math.h>

#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/chunks.h"
#include "runtime/thread_pool.h"

namespace quoll {

void run_unary(UnaryKernel kernel, const float* params, const Mat& in, Mat& out,
               const Option& opt) {
    const StorageKernels* storage = storage_kernels(host_kernel_set(), in.dtype);
    const bool clamps = kHasStoredNorms && storage && storage->clamp &&
                        kernel == host_kernel_set().unary->relu && params[0] == 0.f;
    if (in.dtype == DType::bf16) kernel = bf16_kernel(*host_kernel_set().unary, kernel);
    const Chunks chunks(in, out);
    const int threads = threads_for(opt, 4.0 * in.total() * in.elempack);
    parallel_for(chunks.count(), threads, [&](int64_t i) {
        const Chunk p = chunks[i];
        if (!storage) {
            kernel(p.of(in), p.of(out), p.count, params);
            return;
        }
        if (clamps)
            return storage->clamp(p.of<uint16_t>(in), p.of<uint16_t>(out), p.count, 0.f, INFINITY);
        float values[Chunks::kChunk];
        storage->widen(p.of<uint16_t>(in), values, p.count);
        kernel(values, values, p.count, params);
        storage->narrow(values, p.of<uint16_t>(out), p.count);
    });
}

}  // namespace quoll
