#include "layer/cpu/int8/int8_winograd.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "runtime/thread_pool.h"

namespace quoll {

namespace {

const int kPoints = Int8Winograd::kPoints;
const int kOutputs = 4;  // of a tile, along an axis, at most
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

Int8Winograd::Map::Map(int width, int height) : width(width), height(height), tiles(0) {
    const Axis x(width), y(height);
    int i = 0;
    for (const bool wide : {false, true, true, false}) {
        const bool high = i < 2;
        const int across = wide ? x.fours : x.threes;
        groups[i++] = {tiles,    across,  high ? 0 : y.begin(y.fours), wide ? 0 : x.begin(x.fours),
                       3 + high, 3 + wide};
        tiles += across * (high ? y.fours : y.threes);
    }
}

const Int8Winograd::Group& Int8Winograd::Map::group_of(int tile) const {
    const Group* group = groups;
    while (tile >= group_end(*group)) group++;
    return *group;
}

int Int8Winograd::Map::group_end(const Group& group) const {
    return &group == &groups[3] ? tiles : (&group)[1].first;
}

int Int8Winograd::Map::end(size_t point) const {
    return point / 6 == 3 ? groups[2].first : point % 6 == 3 ? groups[3].first : tiles;
}

// outputs: [height][tiles][width][columns] of tiles first to last - 1, of one group.
void Int8Winograd::store(const Int8Result& result, Int8Panel* panel, int32_t* outputs, int first,
                         int last, const Map& map) const {
    const Group& group = map.group_of(first);
    const int count = last - first, across = group.across;
    for (int i = 0, run; i < count; i += run) {
        const int index = first + i - group.first;
        const int y = group.y + index / across * group.height;
        const int x = group.x + index % across * group.width;
        run = std::min(count - i, across - index % across);  // tiles in this row
        for (int dy = 0; dy < group.height && y + dy < map.height; dy++) {
            GemmRows rows = {};
            rows.c = ((ptrdiff_t)(y + dy) * map.width + x) * (ptrdiff_t)result.c_pack;
            rows.c_row = (ptrdiff_t)result.c_pack;
            rows.rows = std::min(group.width * run, map.width - x);
            panel->finish(rows, outputs + (size_t)(dy * count + i) * group.width * panel->width());
        }
    }
}

// All points of tiles first to last - 1, those that have them: [point][tiles][columns].
void Int8Winograd::multiply(const Points& a, Int8Panel* panel, size_t index, int first, int last,
                            const Map& map, int32_t* sums) const {
    const size_t full = (size_t)kernels_->lanes * kernels_->vectors, columns = panel->width();
    const size_t k_groups = (size_t)channels_ / 2;
    alignas(64) int32_t inits[2 * kMostColumns] = {};
    // The point that all outputs have once begins from what they begin from.
    for (size_t n = 0; n < columns; n++)
        inits[columns + n] = (int32_t)(900u * (uint32_t)panel->init()[n]);
    const GemmBlock block = {0, 0};
    Int8Tile tile = {};
    tile.a_row = (ptrdiff_t)k_groups;
    tile.blocks = &block, tile.num_blocks = 1, tile.block_k = k_groups;
    for (size_t p = 0; p < kPoints; p++) {
        const int begin = std::max(first, map.begin(p)), end = std::min(last, map.end(p));
        if (begin >= end) continue;
        tile.a = (const int32_t*)a.values + (p * a.tiles + (begin - a.first)) * k_groups;
        tile.b = (const int32_t*)weights_.data + kPoints * k_groups * index * full +
                 p * k_groups * columns;
        tile.init = inits + (p == 7 ? columns : 0);
        tile.sums = sums + (p * (last - first) + (begin - first)) * columns;
        panel->tile(end - begin)(tile);
    }
}

// Tiles first to last - 1.
void Int8Winograd::run_tiles(const Int8Result& result, const Points& a, size_t index, int first,
                             int last, const Map& map, int32_t* sums) const {
    const size_t full = result.weights->panel();
    Int8Panel panel(result, index * full, full);
    const size_t columns = panel.width();
    alignas(64) int32_t outputs[kOutputs * kOutputs * kMostValues];
    const size_t most = std::min(kernels_->max_rows, kMostSums / (int)columns);
    const int slice = std::min(kTiles, kMostValues / (int)columns);
    const size_t length = (size_t)(last - first), parts = (length + most - 1) / most;
    for (size_t part = 0; part < parts; part++) {
        const int begin = first + (int)partition_begin(length, parts, part);
        const int end = begin + (int)partition_length(length, parts, part);
        multiply(a, &panel, index, begin, end, map, sums);
        for (int t = begin, next; t < end; t = next) {
            const Group& group = map.group_of(t);
            next = std::min({t + slice, end, map.group_end(group)});
            Int8WinogradOutput o = {};
            o.sums = sums + (t - begin) * columns, o.point = (end - begin) * columns;
            o.n = (next - t) * columns, o.columns = columns;
            o.height = group.height, o.width = group.width;
            o.out = outputs;
            kernels_->winograd_output(o);
            store(result, &panel, outputs, t, next, map);
        }
    }
}

Int8Winograd::Parts Int8Winograd::divide(int width, int height, int threads) const {
    Parts p = {};
    p.all = (size_t)tiles(width) * tiles(height);
    // As many tiles as leave the input in a core's cache while all panels meet it.
    const int most = kernels_->max_rows;
    const size_t kept = (size_t)(std::max(1, (1 << 18) / (2 * kPoints * channels_ * most)) * most);
    p.parts = (p.all + kept - 1) / kept;
    p.each = p.parts >= (size_t)threads;
    p.together = p.each ? (p.all + p.parts - 1) / p.parts : p.all;
    return p;
}

double Int8Winograd::bytes(int width, int height, int threads) const {
    const Parts p = divide(width, height, threads);
    return (double)(p.each ? threads : 1) * points_bytes(p.together) + 64 +
           (double)sizeof(int32_t) * kPoints * kMostSums * threads;
}

void Int8Winograd::transform(const int16_t* in, int block, const Map& map, int first, int last,
                             const Points& to) const {
    const ptrdiff_t row = (ptrdiff_t)positions(map.width) * block;
    const ptrdiff_t plane = row * positions(map.height);
    for (int i = first, run; i < last; i += run) {
        const Group& group = map.group_of(i);
        const int y = (i - group.first) / group.across, x = (i - group.first) % group.across;
        run = std::min(last - i, group.across - x);
        for (int c = 0; c < channels_; c += block) {
            Int8WinogradInput t = {};
            t.in = in + c / block * plane + (group.y + group.height * y) * row +
                   (group.x + group.width * x) * (ptrdiff_t)block;
            t.in_row = row, t.in_pixel = block;
            t.channels = std::min(block, channels_ - c), t.tiles = run;
            t.height = group.height, t.width = group.width;
            t.out = to.values + (size_t)(i - to.first) * channels_ + c;
            t.out_tile = channels_, t.out_point = (ptrdiff_t)to.tiles * channels_;
            kernels_->winograd_input(t);
        }
    }
}

void Int8Winograd::run(const Int8Result& result, const int16_t* in, int block, int width,
                       int height, int16_t* room, int threads) const {
    const Map map(width, height);
    const Parts p = divide(width, height, threads);
    const size_t columns = (size_t)kernels_->lanes * kernels_->vectors;
    const size_t panels = (result.weights->n() + columns - 1) / columns;
    char* const after = (char*)room + (p.each ? threads : 1) * points_bytes(p.together);
    const auto sums_of = [&](int thread) {
        return (int32_t*)after + (size_t)thread * kPoints * kMostSums;
    };
    const auto multiply_part = [&](const Points& a, size_t part, size_t panel, int thread) {
        run_tiles(result, a, panel, (int)p.begin(part), (int)p.end(part), map, sums_of(thread));
    };
    if (p.each) {
        parallel_for((int64_t)p.parts, threads, [&](int64_t i, int thread) {
            const int first = (int)p.begin(i), last = (int)p.end(i);
            int16_t* const values = (int16_t*)((char*)room + thread * points_bytes(p.together));
            const Points points = {values, first, last - first};
            transform(in, block, map, first, last, points);
            for (size_t panel = 0; panel < panels; panel++) multiply_part(points, i, panel, thread);
        });
        return;
    }
    const Points points = {room, 0, (int)p.all};
    const size_t rows = tiles(height);
    parallel_for((int64_t)rows, threads, [&](int64_t y) {
        const size_t first = partition_begin(p.all, rows, y);
        transform(in, block, map, (int)first, (int)(first + partition_length(p.all, rows, y)),
                  points);
    });
    parallel_for((int64_t)(p.parts * panels), threads, [&](int64_t task, int thread) {
        multiply_part(points, task / panels, task % panels, thread);
    });
}

}  // namespace quoll
