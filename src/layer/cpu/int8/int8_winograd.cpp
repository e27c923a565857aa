#include "layer/cpu/int8/int8_winograd.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "runtime/thread_pool.h"

namespace quoll {

namespace {

const int kPoints = Int8Winograd::kPoints;
const int kOutputs = 4;  // of a tile, along an axis
// Tiles whose outputs are made at a time, and their values of a point.
const int kTiles = 8;
const int kMostValues = 128;
// Fewer channels than these leave the transforms too much of the work.
const int kLeastChannels = 16;

// Six points of three taps, 30 times those of Winograd.
void transform_taps(const int* w, ptrdiff_t step, int* out, ptrdiff_t out_step) {
    const int a = w[0], b = w[step], c = w[2 * step];
    out[0] = 15 * a;
    out[out_step] = -5 * (a + b + c);
    out[2 * out_step] = 5 * (a - b + c);
    out[3 * out_step] = a + 2 * b + 4 * c;
    out[4 * out_step] = -4 * a + 2 * b - c;
    out[5 * out_step] = 15 * c;
}

void transform_window(const signed char* w, int* points) {
    int taps[9], rows[18];  // [6][3]
    for (int i = 0; i < 9; i++) taps[i] = w[i];
    for (int x = 0; x < 3; x++) transform_taps(taps + x, 3, rows + x, 3);
    for (int y = 0; y < 6; y++) transform_taps(rows + 3 * y, 1, points + 6 * y, 1);
}

}  // namespace

bool Int8Winograd::is_supported(const Int8Kernels& kernels, const ConvolutionFields& s) {
    if (s.axes == 3 || kernels.k_group != 2 || kernels.lanes < 4 ||
        kernels.lanes * kernels.vectors > kMostColumns || s.kernel_w != 3 || s.kernel_h != 3 ||
        s.stride_w != 1 || s.stride_h != 1 || s.dilation_w != 1 || s.dilation_h != 1 ||
        s.group != 1)
        return false;
    const int each = s.weight_data_size / s.num_output;
    if (each / 9 < kLeastChannels || s.num_output < kLeastChannels) return false;
    const int rest = s.num_output % (kernels.lanes * kernels.vectors);
    if (!kernels.tile_single[0] && rest > 0 && rest <= kernels.lanes) return false;
    const signed char* w = (const signed char*)s.weight_data_int8.data;
    for (int p = 0; p < s.num_output; p++) {
        int64_t sum = 0;
        for (int i = 0; i < each; i++) sum += abs(*w++);
        // Of four times a sum the two bits are lost; what is between may wrap.
        if (4 * sum * (s.int8_affine ? 256 : 128) > INT32_MAX) return false;
    }
    return true;
}

int Int8Winograd::create(const Int8Kernels& kernels, const ConvolutionFields& s, int in_channels,
                         int channels) {
    kernels_ = &kernels;
    const int lanes = kernels.lanes, full = lanes * kernels.vectors;
    const int rest = s.num_output % full;
    const int columns = s.num_output - rest + (rest == 0 ? 0 : rest <= lanes ? lanes : full);
    weights_.create(kPoints * channels / 2 * lanes, columns / lanes);
    if (weights_.empty()) return kOutOfMemory;
    weights_.fill(0.f);
    const size_t k_groups = (size_t)channels / 2;
    for (int n = 0; n < s.num_output; n++) {
        const int panel = n / full * full, width = std::min(full, columns - panel);
        int16_t* const at = (int16_t*)((int32_t*)weights_.data + kPoints * k_groups * panel);
        const signed char* from =
            (const signed char*)s.weight_data_int8.data + (size_t)n * in_channels * 9;
        for (int c = 0; c < in_channels; c++, from += 9) {
            int points[kPoints];
            transform_window(from, points);
            for (size_t p = 0; p < kPoints; p++)
                at[2 * ((p * k_groups + c / 2) * width + (n - panel)) + c % 2] = (int16_t)points[p];
        }
    }
    channels_ = channels;
    return kOk;
}

// outputs: [4][tiles][4][columns] of tiles first to last - 1.
void Int8Winograd::store(const Int8Result& result, Int8Panel* panel, int32_t* outputs, int first,
                         int last, int width, int height) const {
    const int across = tiles(width), count = last - first;
    for (int i = 0; i < count;) {
        const int y = (first + i) / across * kOutputs, x = (first + i) % across * kOutputs;
        const int run = std::min(count - i, across - x / kOutputs);  // tiles in this row
        for (int dy = 0; dy < kOutputs && y + dy < height; dy++) {
            GemmRows rows = {};
            rows.c = ((ptrdiff_t)(y + dy) * width + x) * (ptrdiff_t)result.c_pack;
            rows.c_row = (ptrdiff_t)result.c_pack;
            rows.rows = std::min(kOutputs * run, width - x);
            panel->finish(rows, outputs + (size_t)(dy * count + i) * kOutputs * panel->width());
        }
        i += run;
    }
}

// Tiles first to last - 1, counted along the rows of tiles.
void Int8Winograd::run_tiles(const Int8Result& result, const int16_t* a, size_t index, int first,
                             int last, int width, int height, int32_t* sums) const {
    Int8Panel panel(result, index);
    const size_t columns = panel.width(), full = (size_t)kernels_->lanes * kernels_->vectors;
    const size_t k_groups = (size_t)channels_ / 2;
    const int all = tiles(width) * tiles(height);
    alignas(64) int32_t outputs[kOutputs * kOutputs * kMostValues];
    alignas(64) int32_t inits[2 * kMostColumns] = {};
    // The point that all outputs have once begins from what they begin from.
    for (size_t n = 0; n < columns; n++)
        inits[columns + n] = (int32_t)(900u * (uint32_t)panel.init()[n]);
    const GemmBlock block = {0, 0};
    Int8Tile tile = {};
    tile.a_row = (ptrdiff_t)k_groups;
    tile.blocks = &block, tile.num_blocks = 1, tile.block_k = k_groups;
    const size_t most = std::min(kernels_->max_rows, kMostSums / (int)columns);
    const int slice = std::min(kTiles, kMostValues / (int)columns);
    const size_t length = (size_t)(last - first), groups = (length + most - 1) / most;
    for (size_t group = 0; group < groups; group++) {
        const int t = first + (int)partition_begin(length, groups, group);
        const int count = (int)partition_length(length, groups, group);
        for (size_t p = 0; p < kPoints; p++) {
            tile.a = (const int32_t*)a + (p * all + t) * k_groups;
            tile.b = (const int32_t*)weights_.data + kPoints * k_groups * index * full +
                     p * k_groups * columns;
            tile.init = inits + (p == 7 ? columns : 0);
            tile.sums = sums + p * count * columns;
            panel.tile(count)(tile);
        }
        for (int s = 0; s < count; s += slice) {
            const int end = std::min(s + slice, count);
            const size_t values = (size_t)(end - s) * columns;
            kernels_->winograd_output(sums + s * columns, count * columns, values, columns,
                                      outputs);
            store(result, &panel, outputs, t + s, t + end, width, height);
        }
    }
}

void Int8Winograd::run(const Int8Result& result, const int16_t* in, int block, int width,
                       int height, int16_t* room, int threads) const {
    const int across = tiles(width), down = tiles(height), all = across * down;
    const ptrdiff_t row = (ptrdiff_t)positions(width) * block, plane = row * positions(height);
    parallel_for(down, threads, [&](int64_t y) {
        for (int c = 0; c < channels_; c += block) {
            Int8WinogradInput t = {};
            t.in = in + c / block * plane + kOutputs * y * row;
            t.in_row = row, t.in_pixel = block;
            t.channels = std::min(block, channels_ - c), t.tiles = across;
            t.out = room + (size_t)y * across * channels_ + c;
            t.out_tile = channels_, t.out_point = (ptrdiff_t)all * channels_;
            kernels_->winograd_input(t);
        }
    });
    const size_t columns = (size_t)kernels_->lanes * kernels_->vectors;
    const int64_t panels = (int64_t)((result.weights->n() + columns - 1) / columns);
    // As many tiles as leave the input in a core's cache while all panels meet it.
    const int most = kernels_->max_rows;
    const size_t kept = (size_t)(std::max(1, (1 << 18) / (2 * kPoints * channels_ * most)) * most);
    const size_t partitions = ((size_t)all + kept - 1) / kept;
    const size_t transformed = ((size_t)kPoints * all * channels_ + 31) / 32 * 32;
    int32_t* const sums = (int32_t*)(room + transformed);
    parallel_for((int64_t)partitions * panels, threads, [&](int64_t task, int thread) {
        const size_t i = (size_t)(task / panels);
        const int first = (int)partition_begin((size_t)all, partitions, i);
        run_tiles(result, room, (size_t)(task % panels), first,
                  first + (int)partition_length((size_t)all, partitions, i), width, height,
                  sums + (size_t)thread * kPoints * kMostSums);
    });
}

}  // namespace quoll
