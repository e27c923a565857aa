#include "layer/vulkan/winograd_vulkan.h"

#include <math.h>

#include <algorithm>

namespace quoll {

namespace {

thread_local int forced = -1;

// The number of processors if no extension tells it.
const uint32_t kProcessors = 16;
// Of what is transformed at a time, inputs and sums: they should stay in the device's caches, and
// items enough to fill its processors.
const double kChunkBytes = 32e6;
// Of one item: those of large maps would take several times the memory of their blobs.
const double kMostBytes = 256e6;
// What dispatches take on an H100, in us and multiplications or bytes a us (bench_gpu --winograd).
// Other devices are taken to be as fast for each of their processors.
const double kMeasuredProcessors = 132.;
const double kTransformBytes = 2.4e6, kProductBytes = 3e6, kProductStart = 4.5;
// Starts of the transforms of inputs and outputs; code of tiles of 4 takes longer to load.
const double kTransformStarts = 9.1, kLargeTransformStarts = 14.;
struct Rates {
    double start,
        step;  // of a convolution that is computed directly: at all, for each of its depth
    double direct, product;
    uint32_t rows;           // products are made of so many tiles, or pixels
    uint32_t width, height;  // of the rectangles of pixels that a group of conv_window.comp takes
    // How much of the direct time it may take: small layers of a network run side by side, three
    // dispatches one after another do not (googlenet in f32 lost 5 % where 1. was enough).
    double share;
};
const Rates kMatrixRates = {10., 7e-4, 140e6, 95e6, 64, 16, 8, 1.},
            kPlainRates = {8., 2.9e-3, 11.5e6, 10.5e6, 32, 1, 1, 0.8};

const Rates& rates_of(const Recorder& r) { return r.has_matrices() ? kMatrixRates : kPlainRates; }

double round_up(double n, uint32_t to) { return ceil(n / to) * to; }

bool is_window(const WindowAxis& axis) {
    return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
}

bool can_be_used(const Recorder& r, const ConvGeometry& g) {
    // bf16 has too few digits for values between the steps.
    return r.storage() != Storage::bf16 && g.group == 1 && is_window(g.x) && is_window(g.y) &&
           g.z.in == 1 && g.z.out == 1 && g.z.kernel == 1 && g.num_input % 4 == 0 &&
           g.num_output % 4 == 0 && g.x.out > 0 && g.y.out > 0;
}

size_t weight_step(const ConvGeometry& g, bool as_rows) {
    return as_rows ? (size_t)g.num_output * ((g.num_input + 63) / 64 * 64)
                   : (size_t)g.num_output * g.num_input;
}

WinogradTiling tiling_of(const Recorder& r, const ConvGeometry& g, int out, int items) {
    WinogradTiling t;
    t.out = out;
    t.across = (uint32_t)((g.x.out + out - 1) / out);
    t.down = (uint32_t)((g.y.out + out - 1) / out);
    const double item = (double)t.across * t.down * t.points() * (g.num_input + g.num_output) *
                        (double)storage_size(r.storage());
    t.items = (uint32_t)std::max(1., std::min((double)items, kChunkBytes / item));
    return t;
}

bool fits(const Recorder& r, const ConvGeometry& g, const WinogradTiling& t) {
    const double values = (double)t.tiles() * t.points() * std::max(g.num_input, g.num_output);
    const double both = (double)t.across * t.down * t.points() * (g.num_input + g.num_output);
    if (both * (double)storage_size(r.storage()) > kMostBytes) return false;
    const double weights = (double)t.points() * (double)weight_step(g, true);
    const double most = r.device().limits().maxStorageBufferRange;
    return std::max(values, weights) * (double)storage_size(r.storage()) <= most;
}

// How much longer than the measured device this one works.
double slowness(const Recorder& r) {
    const uint32_t known = r.device().features().processors;
    return kMeasuredProcessors / (known ? known : kProcessors);
}

// Microseconds, of all items.
double expected_time(const Recorder& r, const ConvGeometry& g, const WinogradTiling& t, int items) {
    const Rates& rates = rates_of(r);
    const double tiles = (double)t.across * t.down * items;
    const double bytes =
        tiles * t.points() * (g.num_input + g.num_output) * (double)storage_size(r.storage());
    const double product =
        round_up(tiles, rates.rows) * t.points() * (double)g.num_input * g.num_output;
    const double parts = ceil((double)items / t.items);
    const double starts = kProductStart + (t.out == 2 ? kTransformStarts : kLargeTransformStarts);
    return parts * starts + slowness(r) * (product / rates.product + bytes / kTransformBytes +
                                           bytes / kProductBytes);
}

double direct_time(const Recorder& r, const ConvGeometry& g, int items) {
    const Rates& rates = rates_of(r);
    const double area = round_up(g.x.out, rates.width) * round_up(g.y.out, rates.height) * items;
    const double rows = r.has_matrices() ? area : round_up(area, rates.rows);
    const double depth = 9. * g.num_input;
    return rates.start + depth * rates.step +
           slowness(r) * rows * depth * g.num_output / rates.direct;
}

}  // namespace

WinogradTiling choose_winograd(const Recorder& r, const ConvGeometry& g, int items) {
    WinogradTiling best;
    if (forced == 0 || !can_be_used(r, g)) return best;
    double least = direct_time(r, g, items) * rates_of(r).share;
    // Tiles of 4 lose three times the precision of tiles of 2, which f16 has not.
    for (int out : {2, 4}) {
        if (out == 4 && r.storage() != Storage::f32) continue;
        if (forced > 0 && out != forced) continue;
        const WinogradTiling t = tiling_of(r, g, out, items);
        if (!fits(r, g, t)) continue;
        const double expected = expected_time(r, g, t, items);
        if (forced < 0 && expected >= least) continue;
        best = t, least = expected;
    }
    return best;
}

int prepare_winograd(Recorder& r, const ConvGeometry& g, const WinogradTiling& t, bool as_rows,
                     const Binding& weight, Binding* made) {
    const int inputs = g.num_input, outputs = g.num_output;
    const int depth = (inputs + 63) / 64 * 64, window = (9 * inputs + 63) / 64 * 64;
    const int rows = as_rows ? outputs : inputs, vectors = (as_rows ? depth : outputs) / 4;
    const Words push = {rows,
                        vectors,
                        (as_rows ? inputs : outputs) / 4,
                        (as_rows ? window : outputs) / 4,
                        (as_rows ? inputs : inputs * outputs) / 4,
                        vectors,
                        (uint32_t)weight_step(g, as_rows) / 4};
    Words constants(5, 0);
    constants.push_back(t.out);
    return r.prepare(
        Shader::winograd_weights, constants, weight, push, (uint32_t)rows * (uint32_t)vectors,
        (size_t)t.points() * weight_step(g, as_rows) * storage_size(r.storage()), made);
}

void force_winograd(int out) { forced = out; }

}  // namespace quoll
