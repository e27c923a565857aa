#include "layer/cpu/norm/channel_norm.h"

#include <math.h>

#include <algorithm>

#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/chunks.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/norm/norm.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// The blob, of floats or 16-bit values, as blocks of `pack` channels with `size` values in all.
struct ChannelBlocks {
    void* data;
    const StorageKernels* storage;
    int count, pack;
    size_t size, step;

    ChannelBlocks(const KernelSet& kernels, Mat& m)
        : data(m.data), storage(storage_kernels(kernels, m.dtype)), pack(m.elempack) {
        count = m.dims == 2 ? m.h : m.c;
        size = (m.dims == 2 ? m.w : (size_t)m.w * m.h * m.d) * pack;
        step = (m.dims == 2 ? m.w : m.cstep) * pack;
    }
    // f(values, n) for the values of a block: at once, or as many as stay in cache as floats, which
    // are stored again if `stores`.
    template <class F>
    void walk(size_t q, bool stores, F f) const {
        if (!storage) return f((float*)data + q * step, size);
        const size_t chunk = Chunks::kChunk / pack * pack;
        float values[Chunks::kChunk];
        uint16_t* stored = (uint16_t*)data + q * step;
        for (size_t first = 0; first < size; first += chunk, stored += chunk) {
            const size_t n = std::min(chunk, size - first);
            storage->widen(stored, values, n);
            f(values, n);
            if (stores) storage->narrow(values, stored, n);
        }
    }
    // out[c] = reduction of channel c about about[c].
    void reduce(NormReduce kernel, const float* about, float* out, int threads) const {
        parallel_for(count, threads, [&](int64_t q) {
            const float* const centre = about ? about + q * pack : nullptr;
            float* const sums = out + q * pack;
            std::fill_n(sums, pack, 0.f);
            walk(q, false, [&](const float* values, size_t n) {
                float part[Chunks::kChunk];  // of `pack` lanes
                kernel(values, n, pack, centre, part);
                for (int c = 0; c < pack; c++) sums[c] += part[c];
            });
        });
    }
};

// Sets values[c], for the `each` channels of a group, to the mean over the group; they were sums of
// `size` values.
void share_mean(float* values, int each, size_t size) {
    double sum = 0;
    for (int c = 0; c < each; c++) sum += values[c];
    const float mean = (float)(sum / ((double)each * (double)size));
    for (int c = 0; c < each; c++) values[c] = mean;
}

}  // namespace

int normalize_channels(const KernelSet& kernels, Mat& blob, int groups, float eps,
                       const float* gamma, const float* beta, const Option& opt) {
    const NormKernels& norm = *kernels.norm;
    const int channels = blob.logical_shape().size(0), each = channels / groups;
    if (blob.dims == 1)
        return with_floats(blob, opt, [&](float* values, size_t) {
            for (int first = 0; first < channels; first += each)
                norm.normalize_row(values + first, each, eps, gamma ? gamma + first : nullptr,
                                   beta ? beta + first : nullptr);
        });
    if (blob.elempack > Chunks::kChunk) {  // walk() and reduce() take an element at least
        Mat planar;
        QUOLL_RETURN_IF_ERROR(with_elempack(blob, 1, opt, &planar));
        QUOLL_RETURN_IF_ERROR(normalize_channels(kernels, planar, groups, eps, gamma, beta, opt));
        const int pack = blob.elempack;
        convert_packing(planar, blob, pack, opt);
        return blob.empty() ? (int)kOutOfMemory : (int)kOk;
    }
    const ChannelBlocks blocks(kernels, blob);
    const size_t size = blocks.size / blocks.pack;
    const int threads = threads_for(opt, (double)blocks.size * blocks.count);
    Mat mean_mat(channels, 4u, opt.workspace_allocator);
    Mat variance_mat(channels, 4u, opt.workspace_allocator);
    if (mean_mat.empty() || variance_mat.empty()) return kOutOfMemory;
    float *mean = mean_mat, *variance = variance_mat;
    blocks.reduce(norm.sum, nullptr, mean, threads);
    for (int c = 0; c < channels; c += each) share_mean(mean + c, each, size);
    blocks.reduce(norm.sum_squares, mean, variance, threads);
    for (int c = 0; c < channels; c += each) share_mean(variance + c, each, size);
    float* const factor = variance;
    for (int c = 0; c < channels; c++)
        factor[c] = (gamma ? gamma[c] : 1.f) / sqrtf(variance[c] + eps);
    parallel_for(blocks.count, threads, [&](int64_t q) {
        const size_t first = q * blocks.pack;
        blocks.walk(q, true, [&](float* values, size_t n) {
            norm.scale_centred(values, n, blocks.pack, mean + first, factor + first,
                               beta ? beta + first : nullptr);
        });
    });
    return kOk;
}

}  // namespace quoll
