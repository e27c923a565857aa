#include "layer/cpu/int8/int8_product.h"
#include "layer/common/affine8.h"
#include "runtime/thread_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

namespace quoll {

const Int8Kernels& int8_product_kernels(const Mat& weights) {
    const KernelSet& set = host_kernel_set();
    const Int8Kernels& kernels = set.int8_pairs ? *set.int8_pairs : *set.int8;
    if (!kernels.bytes) return kernels;
    const signed char* const w = weights;
    const int least = w == nullptr ? 0 : *std::min_element(w, w + weights.w);
    return least < kernels.bytes->least_weight ? kernels : *kernels.bytes;
}

bool int8_sums_fit(const Mat& weights, int outputs, bool affine) {
    const signed char* w = weights;
    const int each = weights.w / outputs;
    for (int p = 0; p < outputs; p++) {
        int64_t sum = 0;
        for (int i = 0; i < each; i++) sum += abs(*w++);
        if (sum * (affine ? 256 : 128) > INT32_MAX) return false;
    }
    return true;
}

int Int8Weights::create(const Int8Kernels& kernels, const signed char* weights, size_t ld,
                        const std::vector<int>& order, int n, const float* scales,
                        const float* bias, int zero) {
    kernels_ = &kernels;
    n_ = n;
    const size_t lanes = kernels.lanes, full = panel(), k_group = kernels.k_group;
    k_groups_ = order.size() / k_group;
    const size_t rest = n_ % full;
    const bool single = rest <= lanes && kernels.tile_single[0];
    const size_t columns = n_ - rest + (rest == 0 ? 0 : single ? lanes : full);
    packed_.create((int)lanes, (int)(columns / lanes * k_groups_));
    init_.create((int)columns);
    sums_.create((int)columns);
    scale_.create((int)columns);
    bias_.create((int)columns);
    if (packed_.empty() || init_.empty() || sums_.empty() || scale_.empty() || bias_.empty())
        return kOutOfMemory;
    for (size_t j = 0; j < columns; j++) {
        const size_t p = j / full, width = std::min(full, columns - p * full);
        char* row = (char*)packed_.data + 4 * p * full * k_groups_;
        int64_t sum = 0;
        for (size_t k = 0; k < order.size(); k++) {
            const int w = j < n_ && order[k] >= 0 ? weights[j * ld + order[k]] : 0;
            const size_t i = k / k_group;
            char* k_group_bits = kernels.pairs
                                     ? row + (i / 2 * 2 * width + 2 * (j % full) + i % 2) * 4
                                     : row + (i * width + j % full) * 4;
            sum += w;
            if (k_group == 4) {
                k_group_bits[k % 4] = (char)w;
            } else {
                const int16_t wide = (int16_t)w;
                memcpy(k_group_bits + k % 2 * 2, &wide, 2);
            }
        }
        ((int32_t*)sums_.data)[j] = (int32_t)sum;
        ((int32_t*)init_.data)[j] = (int32_t)(-sum * (kernels.offset + zero));
        scale_[j] = j < n_ ? scales[j] : 0.f;
        bias_[j] = j < n_ && bias ? bias[j] : 0.f;
    }
    return kOk;
}

void Int8Weights::rescale(int zero, float scale, int32_t* init, float* scales) const {
    const size_t count = columns();
    const uint32_t* const sums = (const uint32_t*)sums_.data;  // products wrap: 32 bits suffice
    const float* const own = scale_;
    const uint32_t less = 0u - (uint32_t)(kernels_->offset + zero);
    for (size_t j = 0; j < count; j++) init[j] = (int32_t)(sums[j] * less);
    for (size_t j = 0; j < count; j++) scales[j] = own[j] * scale;
}

void Int8Weights::lowered(int by, int32_t* init) const {
    const uint32_t *const from = (const uint32_t*)init_.data, *const sums =
                                                                  (const uint32_t*)sums_.data;
    for (size_t j = 0; j < columns(); j++) init[j] = (int32_t)(from[j] + (uint32_t)by * sums[j]);
}

Int8Panel::Int8Panel(const Int8Result& result, size_t n0, size_t most) : result_(result), store_() {
    const Int8Weights& w = *result.weights;
    const Int8Kernels& kernels = w.kernels();
    const size_t lanes = kernels.lanes;
    store_.used = std::min(most, w.n() - n0);
    store_.width = std::min(most, w.columns() - n0);
    tiles_ = store_.width < w.panel() ? kernels.tile_single : kernels.tile;
    b_ = w.packed() + n0 * w.k_groups();
    init_ = (result.init ? result.init : (const int32_t*)w.init_.data) + n0;
    store_.scale = (result.scale ? result.scale : (const float*)w.scale_) + n0;
    store_.bias = (const float*)w.bias_ + n0;
    store_.low = result.activation->low, store_.high = result.activation->high;
    store_.top_scale = result.top_scale, store_.slope = stored_slope();
    store_.affine = result.affine, store_.top_zero = result.top_zero;
    columns_of(n0, result.c_block, columns_);
    if (result.add) columns_of(n0, result.add_block, add_columns_);
    store_.columns = columns_, store_.add_columns = add_columns_;
    const bool neighbours = n0 % result.c_pack + store_.used <= result.c_pack;
    store_.run = lanes % result.c_pack == 0               ? result.c_pack
                 : neighbours && store_.used % lanes == 0 ? lanes
                                                          : 1;
    to_bytes_ = leaves_registers();
    if (to_bytes_) set_bytes();
}

// A leaky ReLU that stores apply.
float Int8Panel::stored_slope() const {
    const float slope = result_.activation->max_slope();
    const bool taken =
        result_.weights->kernels().takes_slopes && !(result_.to_s8 && result_.affine);
    return taken && slope < 1.f ? slope : 0.f;
}

// Whole vectors of int8 with a zero point, without what Int8TileBytes lacks.
bool Int8Panel::leaves_registers() const {
    const Int8Result& g = result_;
    const Int8Kernels& kernels = g.weights->kernels();
    return kernels.stores_bytes && g.to_s8 && g.affine && !g.add && !g.activation->pass &&
           g.top_scale > 0.f && g.top_scale < INFINITY && store_.used == store_.width &&
           store_.run == (size_t)kernels.lanes;
}

// The factor of the results goes into the scale of the sums.
void Int8Panel::set_bytes() {
    const float top = store_.top_scale;
    for (size_t n = 0; n < store_.width; n++) {
        byte_scale_[n] = store_.scale[n] * top, byte_bias_[n] = store_.bias[n] * top;
        // Results of sums are below 2^31.
        to_bytes_ = to_bytes_ && fabsf(byte_scale_[n]) < .5f && fabsf(byte_bias_[n]) < 0x1p30f;
    }
    bytes_.scale = byte_scale_, bytes_.bias = byte_bias_;
    bytes_.zero = store_.top_zero;
    bytes_.low = affine_int8(store_.low * top, store_.top_zero);
    bytes_.high = affine_int8(store_.high * top, store_.top_zero);
    bytes_.columns = columns_;
}

const Int8TileBytes* Int8Panel::bytes(const GemmRows& rows) {
    if (!to_bytes_ || rows.c_row != (ptrdiff_t)store_.run) return nullptr;
    bytes_.c = (int8_t*)result_.c + rows.c;
    return &bytes_;
}

// Where the panel's columns are in a blob with such steps between blocks.
void Int8Panel::columns_of(size_t n0, ptrdiff_t block, ptrdiff_t* columns) const {
    const size_t pack = result_.c_pack;
    ptrdiff_t at = (ptrdiff_t)(n0 / pack) * block;
    size_t lane = n0 % pack;
    const size_t used = store_.used;
    if (lane + used <= pack) {
        for (size_t i = 0; i < used; i++) columns[i] = at + (ptrdiff_t)(lane + i);
        return;
    }
    for (size_t i = 0; i < used; i++) {
        columns[i] = at + (ptrdiff_t)lane;
        if (++lane == pack) lane = 0, at += block;
    }
}

// With an activation that takes a pass: y, in the place of the sums.
void Int8Panel::activate(const GemmRows& rows, int32_t* sums) {
    const Int8Kernels& kernels = result_.weights->kernels();
    ptrdiff_t in_order[kGemmMaxRows * 4];
    for (size_t i = 0; i < store_.width; i++) in_order[i] = (ptrdiff_t)i;
    Int8Store floats = store_;
    floats.add = nullptr, floats.slope = 0.f;
    floats.used = store_.width;
    floats.c = sums;
    floats.c_row = (ptrdiff_t)store_.width;
    floats.columns = in_order;
    floats.run = kernels.lanes;
    kernels.finish_f32(floats);
    float* y = (float*)sums;
    if (result_.add) {
        const float* add = result_.add + rows.c;
        for (int m = 0; m < rows.rows; m++, add += rows.c_row)
            for (size_t n = 0; n < store_.used; n++)
                y[m * store_.width + n] += add[add_columns_[n]];
    }
    result_.activation->finish(y, rows.rows * store_.width);
}

void Int8Panel::finish(const GemmRows& rows, int32_t* sums) {
    const Int8Result& g = result_;
    const Int8Kernels& kernels = g.weights->kernels();
    Int8StoreKernel last = g.to_s8 ? kernels.finish_s8 : kernels.finish_f32;
    store_.sums = sums;
    store_.rows = rows.rows;
    store_.add = g.add ? g.add + rows.c : nullptr;
    const size_t lanes = kernels.lanes;
    // Whole registers, one after another: the pass runs where they are.
    const bool in_place = !g.to_s8 && store_.run == lanes && rows.c_row == (ptrdiff_t)lanes;
    const bool passes = g.activation->pass && store_.slope == 0.f;
    if (passes && !in_place) {
        activate(rows, sums);
        store_.add = nullptr;
        last = g.to_s8 ? kernels.store_s8 : kernels.store_f32;
    }
    store_.c = g.to_s8 ? (void*)((int8_t*)g.c + rows.c) : (void*)((float*)g.c + rows.c);
    store_.c_row = rows.c_row;
    last(store_);
    if (!passes || !in_place) return;
    for (size_t n = 0; n < store_.used; n += lanes)
        g.activation->finish((float*)store_.c + columns_[n], rows.rows * lanes);
}

namespace {

// k-groups of the activations that stay close to a core while all panels meet them.
const size_t kChunkKGroups = 128 * 1024;

// Rows of C that are finished together: setting that up takes as long as a few rows. Of narrow
// panels as many as have so many sums.
const int kRowsTogether = 4 * kGemmMaxRows;
const int kSumsTogether = 32 * kRowsTogether;

void run_panel(const Int8Problem& g, size_t p, size_t first, size_t last) {
    alignas(64) int32_t sums[kRowsTogether * kGemmMaxRows * 4];
    const Int8Weights& w = *g.weights;
    const size_t full = w.panel();
    Int8Panel panel(g, p * full, full);
    Int8Tile tile = {};
    tile.blocks = g.blocks;
    tile.num_blocks = g.num_blocks;
    tile.block_k = g.block_k;
    tile.a_pair = g.a_pair, tile.small = g.small;
    tile.b = panel.b(), tile.init = panel.init();
    const size_t row = full * sizeof(int32_t);
    const bool fetches = is_fetched(w.columns() * w.k_groups() * sizeof(int32_t));
    const size_t width = panel.width();
    const int most = std::max(kRowsTogether, kSumsTogether / (int)width);
    const GemmRows* const end = g.rows + last;
    const auto multiply = [&](const GemmRows* rows, int tiles) {
        tile.more = (size_t)tiles - 1;
        tile.a_tile = tiles > 1 ? rows[1].a - rows->a : 0;
        tile.a = g.a + rows->a;
        tile.a_row = rows->a_row;
        if (fetches)
            tile.fetch = fetch_part(panel.b() + full * w.k_groups(), w.k_groups(), row,
                                    rows - g.rows - first, last - first);
        panel.tile(rows->rows)(tile);
    };
    for (const GemmRows* rows = g.rows + first; rows < end;) {
        tile.bytes = panel.bytes(*rows);
        if (tile.bytes) {
            multiply(rows++, 1);
            continue;
        }
        GemmRows together = *rows;
        together.rows = 0;
        tile.sums = sums;
        ptrdiff_t next = together.c;
        do {
            // Tiles that lie one behind the other in C, too, are one call.
            int tiles = 1;
            if (g.a_pair && rows->alike > 1 && rows[1].c - rows->c == rows->rows * together.c_row)
                tiles =
                    std::min({rows->alike, (int)(end - rows), (most - together.rows) / rows->rows});
            multiply(rows, tiles);
            const int count = tiles * rows->rows;
            tile.sums += count * width;
            together.rows += count;
            next += count * together.c_row;
            rows += tiles;
        } while (rows < end && together.rows + rows->rows <= most && rows->c == next &&
                 rows->c_row == together.c_row);
        panel.finish(together, sums);
    }
}

}  // namespace

bool Int8Panel::is_plain_row(const Int8Problem& g) {
    return g.num_rows == 1 && g.rows[0].rows == 1 && !g.to_s8 && !g.add && !g.activation->pass &&
           g.c_pack >= g.weights->n();
}

void Int8Panel::run_row(const Int8Problem& g, size_t first, size_t last) {
    alignas(64) int32_t sums[kGemmMaxRows * 4];
    ptrdiff_t in_order[kGemmMaxRows * 4];
    for (size_t i = 0; i < sizeof(in_order) / sizeof(*in_order); i++) in_order[i] = (ptrdiff_t)i;
    const Int8Weights& w = *g.weights;
    const Int8Kernels& kernels = w.kernels();
    const size_t lanes = kernels.lanes, full = w.panel();
    Int8Tile tile = {};
    tile.a = g.a + g.rows[0].a, tile.a_row = g.rows[0].a_row;
    tile.blocks = g.blocks, tile.num_blocks = g.num_blocks, tile.block_k = g.block_k;
    tile.a_pair = g.a_pair, tile.small = g.small;
    tile.sums = sums;
    const bool fetches = is_fetched(w.columns() * w.k_groups() * sizeof(int32_t));
    Int8Store store = {};
    store.sums = sums, store.rows = 1;
    store.low = g.activation->low, store.high = g.activation->high;
    store.columns = in_order;
    for (size_t p = first; p < last; p++) {
        const size_t n0 = p * full;
        tile.b = w.packed() + n0 * w.k_groups();
        tile.init = (g.init ? g.init : (const int32_t*)w.init_.data) + n0;
        if (fetches)
            tile.fetch = fetch_part(tile.b + full * w.k_groups(), w.k_groups(),
                                    full * sizeof(int32_t), 0, 1);
        store.used = std::min(full, w.n() - n0);
        store.width = std::min(full, w.columns() - n0);
        store.run = store.used % lanes ? 1 : lanes;
        store.scale = (g.scale ? g.scale : (const float*)w.scale_) + n0;
        store.bias = (const float*)w.bias_ + n0;
        store.c = (float*)g.c + g.rows[0].c + n0;
        (store.width < full ? kernels.tile_single : kernels.tile)[0](tile);
        kernels.finish_f32(store);
    }
}

void int8_run(const Int8Problem& g, int threads) {
    const size_t columns = g.weights->panel();
    const size_t panels = (g.weights->n() + columns - 1) / columns;
    if (Int8Panel::is_plain_row(g)) {
        const int parts = (int)std::min<size_t>(panels, threads);
        run_tasks(parts, threads, [&](int64_t i, int) {
            const size_t first = partition_begin(panels, parts, i);
            Int8Panel::run_row(g, first, first + partition_length(panels, parts, i));
        });
        return;
    }
    // Partitions of A for the cache, and enough tasks for all threads.
    size_t partitions = (g.num_rows * g.row_k_groups + kChunkKGroups - 1) / kChunkKGroups;
    if (threads > 1) partitions = std::max(partitions, (size_t)threads * 2 / panels);
    partitions = std::max<size_t>(1, std::min(partitions, g.num_rows));
    const int64_t tasks = (int64_t)(partitions * panels);
    parallel_for(tasks, threads, [&](int64_t task) {
        const size_t partition = task / panels,
                     first = partition_begin(g.num_rows, partitions, partition);
        run_panel(g, task % panels, first,
                  first + partition_length(g.num_rows, partitions, partition));
    });
}

}  // namespace quoll
