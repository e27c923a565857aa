#include "layer/cpu/norm/channel_norm.h"

#include <math.h>

#include <algorithm>

#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/chunks.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/norm/norm.h"
#include "layer/cpu/unary/fused_activation.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// The blob, of floats or 16-bit values, as blocks of `pack` channels with `size` values in all,
// each divided into `parts`. How many does not depend on the threads, as sums are rounded by part.
struct ChannelBlocks {
    enum { kPart = 4 * Chunks::kChunk, kMostParts = 32 };  // a part fits the first-level cache

    void* data;
    const StoredValues stored;
    const StorageKernels* storage;
    bool direct;  // the storage type has kernels of its own
    int count, pack;
    size_t size, step;
    size_t part, rest;  // values of each channel in a part, and in the last one
    int parts;

    ChannelBlocks(const KernelSet& kernels, Mat& m, const InstanceNorm::Bytes& bytes)
        : data(m.data),
          stored(kernels, m.dtype, bytes),
          storage(stored.storage()),
          pack(m.elempack) {
        direct = storage && storage->moments && kernels.lanes % pack == 0;
        count = m.dims == 2 ? m.h : m.c;
        const size_t elements = m.dims == 2 ? m.w : (size_t)m.w * m.h * m.d;
        size = elements * pack;
        step = (m.dims == 2 ? m.w : m.cstep) * pack;
        const size_t least = std::max(1, kPart / pack);
        part = std::max(least, (elements + kMostParts - 1) / kMostParts);
        parts = (int)((elements + part - 1) / part);
        rest = elements - (size_t)(parts - 1) * part;
    }
    int64_t all_parts() const { return (int64_t)count * parts; }
    // Values of each channel in part i of a block.
    size_t length(int i) const { return i + 1 < parts ? part : rest; }
    // Where the values of part i of all begin.
    size_t place(int64_t i) const { return i / parts * step + i % parts * part * pack; }
    uint16_t* stored_part(int64_t i) const { return (uint16_t*)data + place(i); }
    // f(values, n) for the values of part i of all: at once, or as many as stay in cache as floats,
    // which are stored again if `stores`.
    template <class F>
    void walk(int64_t i, bool stores, F f, size_t most = Chunks::kChunk) const {
        const size_t all = length((int)(i % parts)) * pack;
        if (stored.floats()) return f((float*)data + place(i), all);
        const size_t chunk = std::min<size_t>(most, Chunks::kChunk) / pack * pack;
        float values[Chunks::kChunk];
        for (size_t first = 0; first < all; first += chunk) {
            const size_t n = std::min(chunk, all - first), at = place(i) + first;
            stored.widen(data, at, values, n);
            f(values, n);
            if (stores) stored.narrow(values, data, at, n);
        }
    }
    // out[c] = reduction of channel c of part i about about[c].
    void reduce(NormReduce kernel, int64_t i, const float* about, float* out) const {
        std::fill_n(out, pack, 0.f);
        walk(i, false, [&](const float* values, size_t n) {
            float sums[Chunks::kChunk];  // of `pack` lanes
            kernel(values, n, pack, about, sums);
            for (int c = 0; c < pack; c++) out[c] += sums[c];
        });
    }
};

// The steps of a normalisation: moments of parts, of groups, and what they make of the values.
struct ChannelNorm {
    const NormKernels& norm;
    const ChannelBlocks& blocks;
    const int each;  // channels of a group
    const float eps, *const gamma, *const beta;
    const FusedActivation activation;
    float* const moments;  // of each part: means of the channels, then squares about them
    float *const mean, *const factor;  // of each channel

    // Sums of so few squares of differences of int8 are exact as floats.
    enum { kExactSums = 256, kIntegerLanes = 64 };
    void measure_integers(int64_t i, double elements, float* means, float* squares) const {
        double all[2][kIntegerLanes] = {};
        const auto add = [&](const float* values, size_t n) {
            float sums[kIntegerLanes];
            norm.sum(values, n, blocks.pack, nullptr, sums);
            for (int c = 0; c < blocks.pack; c++) all[0][c] += sums[c];
            norm.sum_squares(values, n, blocks.pack, nullptr, sums);
            for (int c = 0; c < blocks.pack; c++) all[1][c] += sums[c];
        };
        blocks.walk(i, false, add, (size_t)kExactSums * blocks.pack);
        for (int c = 0; c < blocks.pack; c++) {
            means[c] = (float)(all[0][c] / elements);
            squares[c] = (float)(all[1][c] - all[0][c] * all[0][c] / elements);
        }
    }
    void measure(int64_t i) const {
        float *const means = moments + i * 2 * blocks.pack, *const squares = means + blocks.pack;
        const size_t elements = blocks.length((int)(i % blocks.parts));
        if (kHasStoredNorms && blocks.direct)
            return blocks.storage->moments(blocks.stored_part(i), elements, blocks.pack, means,
                                           squares);
        if (blocks.stored.is_int8() && blocks.pack <= kIntegerLanes)
            return measure_integers(i, (double)elements, means, squares);
        const float length = (float)elements;
        blocks.reduce(norm.sum, i, nullptr, means);
        for (int c = 0; c < blocks.pack; c++) means[c] /= length;
        blocks.reduce(norm.sum_squares, i, means, squares);
    }
    // f(mean, squares, length) for the parts of the group that begins with this channel.
    template <class F>
    void for_each_part(int first, F f) const {
        for (int c = first; c < first + each; c++) {
            const int64_t begin = (int64_t)(c / blocks.pack) * blocks.parts;
            const float* part = moments + begin * 2 * blocks.pack + c % blocks.pack;
            for (int i = 0; i < blocks.parts; i++, part += 2 * blocks.pack)
                f(part[0], part[blocks.pack], (double)blocks.length(i));
        }
    }
    void join(int first) const {
        const double values = (double)each * (double)(blocks.size / blocks.pack);
        double sum = 0, squares = 0;
        for_each_part(first, [&](float m, float, double length) { sum += m * length; });
        const double centre = sum / values;
        for_each_part(first, [&](float m, float part, double length) {
            squares += part + (m - centre) * (m - centre) * length;
        });
        const float deviation = sqrtf((float)(squares / values) + eps);
        for (int c = first; c < first + each; c++) {
            mean[c] = (float)centre;
            factor[c] = (gamma ? gamma[c] : 1.f) / deviation;
        }
    }
    void scale(int64_t i) const {
        const size_t first = i / blocks.parts * blocks.pack;
        const float* const term = beta ? beta + first : nullptr;
        const float low = activation.low, high = activation.high;
        if (kHasStoredNorms && blocks.direct && !activation.pass)
            return blocks.storage->scale_centred(
                blocks.stored_part(i), blocks.length((int)(i % blocks.parts)), blocks.pack,
                mean + first, factor + first, term, low, high);
        blocks.walk(i, true, [&](float* values, size_t n) {
            norm.scale_centred(values, n, blocks.pack, mean + first, factor + first, term, low,
                               high);
            if (activation.pass) activation.pass(values, values, n, activation.params);
        });
    }

    // Blocks that no group shares with others.
    int unit() const {
        if (blocks.pack % each == 0) return 1;
        return each % blocks.pack == 0 ? each / blocks.pack : blocks.count;
    }
    // Units are run as a whole, while they are in cache, unless threads would then wait.
    void run(int threads) const {
        const int channels = blocks.count * blocks.pack, some = unit(), units = blocks.count / some;
        if (units < 4 * threads && units % threads != 0) {
            parallel_for(blocks.all_parts(), threads, [&](int64_t i) { measure(i); });
            for (int c = 0; c < channels; c += each) join(c);
            parallel_for(blocks.all_parts(), threads, [&](int64_t i) { scale(i); });
            return;
        }
        const int64_t parts = (int64_t)some * blocks.parts;
        parallel_for(units, threads, [&](int64_t u) {
            for (int64_t i = u * parts; i < (u + 1) * parts; i++) measure(i);
            for (int c = 0; c < some * blocks.pack; c += each)
                join((int)u * some * blocks.pack + c);
            for (int64_t i = u * parts; i < (u + 1) * parts; i++) scale(i);
        });
    }
};

}  // namespace

int normalize_channels(const KernelSet& kernels, Mat& blob, int groups, float eps,
                       const float* gamma, const float* beta, const Activation& activation,
                       const Option& opt, const InstanceNorm::Bytes& bytes) {
    const NormKernels& norm = *kernels.norm;
    const int channels = blob.logical_shape().size(0), each = channels / groups;
    if (blob.dims == 1)
        return with_floats(
            blob, opt,
            [&](float* values, size_t) {
                for (int first = 0; first < channels; first += each)
                    norm.normalize_row(values + first, each, eps, gamma ? gamma + first : nullptr,
                                       beta ? beta + first : nullptr);
                activate_all(values, channels, activation);
            },
            bytes);
    if (blob.elempack > Chunks::kChunk) {  // walk() and reduce() take an element at least
        Mat planar;
        QUOLL_RETURN_IF_ERROR(with_elempack(blob, 1, opt, &planar));
        QUOLL_RETURN_IF_ERROR(
            normalize_channels(kernels, planar, groups, eps, gamma, beta, activation, opt, bytes));
        const int pack = blob.elempack;
        convert_packing(planar, blob, pack, opt);
        return blob.empty() ? (int)kOutOfMemory : (int)kOk;
    }
    const ChannelBlocks blocks(kernels, blob, bytes);
    Mat moments(2 * blocks.parts, channels, 4u, opt.workspace_allocator);
    Mat results(channels, 2, 4u, opt.workspace_allocator);
    if (moments.empty() || results.empty()) return kOutOfMemory;
    const FusedActivation fused(kernels, activation, blob.dtype == DType::bf16);
    const ChannelNorm run = {norm,  blocks,  each,           eps,           gamma, beta,
                             fused, moments, results.row(0), results.row(1)};
    run.run(threads_for(opt, (double)blocks.size * blocks.count));
    return kOk;
}

}  // namespace quoll
