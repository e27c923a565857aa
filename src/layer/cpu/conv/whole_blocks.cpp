#include "layer/cpu/conv/whole_blocks.h"

#include <string.h>

#include <algorithm>

#include "layer/cpu/layout/layout.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

int whole(int channels, int lanes) { return (channels + lanes - 1) / lanes * lanes; }

double values_of(const ConvAxis& x, const ConvAxis& y, const ConvAxis& z, bool out, int channels) {
    return (out ? (double)x.out * y.out * z.out : (double)x.in * y.in * z.in) * channels;
}

// Elements of `pack` floats, 4 or 8.
template <size_t pack>
void copy_elements(const float* from, size_t from_pack, float* to, size_t to_pack, size_t count) {
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * to_pack, from + i * from_pack, pack * sizeof(float));
}

void copy_block(size_t pack, const float* from, size_t from_pack, float* to, size_t to_pack,
                size_t count) {
    if (pack == 8)
        copy_elements<8>(from, from_pack, to, to_pack, count);
    else
        copy_elements<4>(from, from_pack, to, to_pack, count);
}

// f(q, first, count) for each block q of `lanes` channels: it has those from `first` on.
template <class F>
void for_each_block(const ChannelBlocksOf& blob, int lanes, int threads, const F& f) {
    const int blocks = whole(blob.channels, lanes) / lanes;
    parallel_for(blocks, threads, [&](int64_t q) {
        const int first = (int)q * lanes;
        f((int)q, first, std::min(lanes, blob.channels - first));
    });
}

}  // namespace

ConvShape with_whole_blocks(const KernelSet& kernels, const ConvShape& shape) {
    ConvShape s = shape;
    if (!kCopiesToWholeBlocks || !kernels.layout) return s;
    s.in_channels = whole(s.in_channels, kernels.lanes);
    s.out_channels = whole(s.out_channels, kernels.lanes);
    s.in_pack = s.out_pack = kernels.lanes;
    return s;
}

double values_to_copy(const ConvShape& s, const ConvShape& whole) {
    double values = 0;
    if (s.in_pack != whole.in_pack) values += values_of(s.x, s.y, s.z, false, whole.in_channels);
    if (s.out_pack != whole.out_pack) values += values_of(s.x, s.y, s.z, true, whole.out_channels);
    return values;
}

void copy_to_whole_blocks(const KernelSet& kernels, const float* from, const ChannelBlocksOf& blob,
                          Mat& to, int threads) {
    const int lanes = to.elempack;
    for_each_block(blob, lanes, threads, [&](int q, int first, int count) {
        float* const block = to.channel(q);
        if (count < lanes) memset(block, 0, blob.elements * lanes * sizeof(float));
        const float* source = from + first / blob.pack * blob.step;
        if (blob.pack == 1)
            return kernels.layout->transpose(
                {source, blob.step, block, (size_t)lanes, blob.elements, (size_t)count});
        for (int i = 0; i < count; i += blob.pack, source += blob.step)
            copy_block(blob.pack, source, blob.pack, block + i, lanes, blob.elements);
    });
}

void copy_from_whole_blocks(const KernelSet& kernels, const Mat& from, float* to,
                            const ChannelBlocksOf& blob, int threads) {
    const int lanes = from.elempack;
    for_each_block(blob, lanes, threads, [&](int q, int first, int count) {
        const float* const block = from.channel(q);
        float* target = to + first / blob.pack * blob.step;
        if (blob.pack == 1)
            return kernels.layout->transpose(
                {block, (size_t)lanes, target, blob.step, (size_t)count, blob.elements});
        for (int i = 0; i < count; i += blob.pack, target += blob.step)
            copy_block(blob.pack, block + i, lanes, target, blob.pack, blob.elements);
    });
}

}  // namespace quoll
