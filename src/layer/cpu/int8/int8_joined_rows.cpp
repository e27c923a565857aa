#include "layer/cpu/int8/int8_joined_rows.h"

#include <string.h>

#include <algorithm>

namespace quoll {

namespace {

enum { kValues = 4 };  // of a k-group

void copy_every(int stride, const int8_t* from, int64_t n, int8_t* to) {
    if (stride == 1) {
        memcpy(to, from, (size_t)n);
    } else if (stride == 2) {
        for (int64_t i = 0; i < n; i++) to[i] = from[2 * i];
    } else {
        for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
    }
}

// Columns `phase` + i * stride of the windows' positions, i < n.
void copy_phase(const WindowAxis& x, const int8_t* row, int phase, int n, int pad, int8_t* to) {
    const int64_t before = (int64_t)x.before - phase, stride = x.stride;
    const int64_t first = std::min<int64_t>(n, before <= 0 ? 0 : (before + stride - 1) / stride);
    const int64_t end = x.in + before <= 0 ? 0 : (x.in - 1 + before) / stride + 1;
    const int64_t last = std::max(first, std::min<int64_t>(n, end));
    memset(to, pad, (size_t)first);
    if (last > first) copy_every(x.stride, row + first * stride - before, last - first, to + first);
    memset(to + last, pad, (size_t)(n - last));
}

}  // namespace

Int8JoinedRows::Int8JoinedRows(int channels, int kernel, int stride)
    : kernel_(kernel), stride_(stride) {
    for (int c = 0; c < channels; c++)
        for (int phase = 0; phase < std::min(kernel, stride); phase++)
            for (int first = 0; first < taps_of(phase); first += kValues)
                groups_.push_back({c, phase, first});
}

int Int8JoinedRows::tap(int i, int taps) const {
    if (i / kValues >= k_groups()) return -1;
    const Group& g = groups_[i / kValues];
    const int column = g.phase + stride_ * (g.first + i % kValues);
    return column < kernel_ ? g.channel * taps + column : -1;
}

size_t Int8JoinedRows::scratch(const WindowAxis& x) const {
    return (size_t)x.in + x.out + (kernel_ - 1) / stride_;
}

void Int8JoinedRows::pack(const Int8Kernels& kernels, const Row& row, const WindowAxis& x,
                          const Place& place, int8_t* scratch) const {
    int8_t* const columns = scratch + x.in;
    const int8_t* bytes = nullptr;
    for (int i = 0; i < k_groups(); i++) {
        const Group& g = groups_[i];
        const int taps = taps_of(g.phase);
        if (g.first == 0) {
            if (row.is_s8) {
                bytes = (const int8_t*)row.row + g.channel * row.channel;
            } else if (g.phase == 0) {
                kernels.round_s8((const float*)row.row + g.channel * row.channel, (size_t)x.in,
                                 row.scale, scratch);
                bytes = scratch;
            }
            copy_phase(x, bytes, g.phase, x.out + taps - 1, row.pad, columns);
        }
        Int8Input input = {};
        input.src = columns + g.first;
        input.src_pixel = input.src_block = 1;
        input.channels = std::min<int>(kValues, taps - g.first);
        input.pixels = (size_t)x.out;
        input.dst = place.to + i / place.together * place.plane + i % place.together * kValues;
        input.dst_pixel = place.pixel;
        input.dst_pack = kValues;
        kernels.input_s8[0](input);
    }
}

}  // namespace quoll
