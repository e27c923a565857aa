#include "layer/cpu/gemm/planar_product.h"

#include <string.h>

#include <algorithm>

#include "layer/common/scratch.h"
#include "layer/cpu/gemm/gemm_run.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

size_t value_bytes(const GemmKernels& gemm) { return gemm.halves == 4 ? 2 : 4; }

size_t tile_pixels(const GemmKernels& gemm) {
    return gemm.halves == 4 ? planar_half_pixels(gemm) : planar_pixels(gemm);
}

// The most pixels that a tile of floats has.
enum { kMostPixels = kPlanarVectors * 16 };

// The floats whose memory the pixels of a tile take: half floats take half as many.
size_t tile_floats(const GemmKernels& gemm) {
    return tile_pixels(gemm) * value_bytes(gemm) / sizeof(float);
}

// A float that lists of it do not set to 0 first.
struct UnsetFloat {
    UnsetFloat() {}
    float value;
};

// Brings a tile's pixels from blocks to [channel][pixel].
void lay_out(const PlanarProduct& p, const float* in, float* to) {
    const size_t pixels = tile_pixels(*p.gemm);
    for (size_t c = 0; c < p.in_channels; c += p.in_pack, in += p.in_step)
        p.gemm->store_columns(in, p.in_pack, (int)pixels, p.in_pack, to + c * pixels,
                              (ptrdiff_t)pixels);
}

// Writes `used` channels from `first` on, [channel][pixel], to the blocks of the output.
void store_blocks(const PlanarProduct& p, const float* from, size_t first, size_t used, char* out) {
    const size_t pixels = tile_pixels(*p.gemm), pack = p.out_pack;
    for (size_t i = 0, n; i < used; i += n) {
        const size_t at = first + i;
        n = std::min(used - i, pack - at % pack);
        p.gemm->store_columns(from + i * pixels, pixels, (int)n, pixels,
                              (float*)out + at / pack * p.out_step + at % pack, (ptrdiff_t)pack);
    }
}

// Multiplies a tile of pixels, by all output channels.
void run_pixels(const PlanarProduct& p, const char* in, const char* weights, const char* bias,
                char* out, const FusedActivation& activation) {
    alignas(64) float block[2 * kPlanarColumns * kMostPixels];
    const size_t k = p.in_channels, n = p.out_channels, value = value_bytes(*p.gemm);
    const size_t columns = (size_t)p.panels->lanes * p.panels->vectors;
    const size_t narrow = kPlanarColumns, wide = 2 * narrow;
    for (size_t n0 = 0; n0 < n; n0 += columns) {
        const size_t width = gemm_panel_width(*p.panels, n - n0);
        for (size_t j = 0; j < width && n0 + j < n;) {
            const size_t first = n0 + j;
            const size_t step = std::min(width - j, n - first) > narrow ? wide : narrow;
            GemmPlanarTile tile = {};
            tile.in = in;
            tile.in_step = (ptrdiff_t)p.in_step;
            tile.k = k;
            tile.b = weights + (n0 * k + j) * value;
            tile.b_step = width;
            tile.bias = bias + first * value;
            tile.out = p.out_pack > 1 ? (char*)block : out + first * p.out_step * value;
            tile.out_step = (ptrdiff_t)(p.out_pack > 1 ? tile_pixels(*p.gemm) : p.out_step);
            tile.used = std::min(step, n - first);
            tile.low = activation.low, tile.high = activation.high;
            p.gemm->planar[step / kPlanarColumns - 1](tile);
            for (size_t i = 0; activation.pass && i < tile.used; i++)
                activation.finish((float*)((char*)tile.out + i * tile.out_step * value),
                                  tile_floats(*p.gemm));
            if (p.out_pack > 1) store_blocks(p, block, first, tile.used, out);
            j += step;
        }
    }
}

// Multiplies fewer pixels than a tile has, padded with zeros.
void run_few_pixels(const PlanarProduct& product, const char* in, const char* weights,
                    const char* bias, char* out, const FusedActivation& activation) {
    const size_t value = value_bytes(*product.gemm), bytes = product.pixels * value;
    const size_t row = tile_floats(*product.gemm);
    Scratch<float> memory;
    memory->assign((product.in_channels + product.out_channels) * row, 0.f);
    float *const from = memory->data(), *const to = from + product.in_channels * row;
    for (size_t c = 0; c < product.in_channels; c++)
        memcpy(from + c * row, in + c * product.in_step * value, bytes);
    PlanarProduct tile = product;
    tile.in_step = tile.out_step = tile_pixels(*product.gemm);
    run_pixels(tile, (const char*)from, weights, bias, (char*)to, activation);
    for (size_t c = 0; c < product.out_channels; c++)
        memcpy(out + c * product.out_step * value, to + c * row, bytes);
}

}  // namespace

// The last pixels are fewer than a tile has; the thread that has them computes some pixels before
// them a second time.
void run_planar(const PlanarProduct& p, const void* in, const void* weights, const void* bias,
                void* out, const FusedActivation& activation, int threads) {
    const size_t value = value_bytes(*p.gemm), pixels = tile_pixels(*p.gemm);
    const char *const from = (const char*)in, *const b = (const char*)weights;
    const char* const start = (const char*)bias;
    char* const to = (char*)out;
    if (p.pixels < pixels) return run_few_pixels(p, from, b, start, to, activation);
    const size_t tiles = p.pixels / pixels;
    const int partitions = (int)std::min<size_t>(tiles, std::max(threads, 1));
    const bool blocks = p.in_pack > 1;
    PlanarProduct laid = p;
    if (blocks) laid.in_step = pixels, laid.in_pack = 1;
    // Of the calling thread: workers would allocate theirs whenever they first take a part.
    Scratch<UnsetFloat> memory;
    const size_t tile_values = blocks ? p.in_channels * pixels : 0;
    memory->resize(partitions * tile_values);
    run_tasks(partitions, threads, [&](int64_t t, int) {
        const size_t first = partition_begin(tiles, partitions, t);
        const size_t last = first + partition_length(tiles, partitions, t);
        float* const tile = (float*)(memory->data() + t * tile_values);
        const auto run_at = [&](size_t at) {
            const char* source = from + at * p.in_pack * value;
            if (blocks) lay_out(p, (const float*)source, tile);
            run_pixels(laid, blocks ? (const char*)tile : source, b, start,
                       to + at * p.out_pack * value, activation);
        };
        for (size_t i = first; i < last; i++) run_at(i * pixels);
        if (last == tiles && p.pixels % pixels) run_at(p.pixels - pixels);
    });
}

}  // namespace quoll
