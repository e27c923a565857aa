#include "layer/cpu/gemm/split_gemm.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <chrono>

#include "layer/cpu/common/kernel_set.h"

namespace quoll {

// ---------------------------------------------------------------- speed

namespace {

// Nanoseconds per unit of work, the median of windows of some 30 us.
double time_of(void (*spin)(int), int count) {
    enum { kWindows = 15 };
    double times[kWindows];
    for (double& time : times) {
        const auto begin = std::chrono::steady_clock::now();
        spin(count);
        const auto end = std::chrono::steady_clock::now();
        time = std::chrono::duration<double, std::nano>(end - begin).count() / count;
    }
    std::sort(times, times + kWindows);
    return times[kWindows / 2];
}

// The slowest that units were for seconds on end; anything slower passes sooner, or was a
// disturbance.
const double kMostSlowness = 2.5;

// A tile multiplication takes 16 cycles, a vector multiply-add half a cycle (two ports).
double measure_slowness() {
    const SplitGemmKernels* kernels = host_kernel_set().split1;
    if (!kernels || !kernels->spin_tiles) return 1;
    const double vector_ns = time_of(kernels->spin_vectors, 1 << 17);
    kernels->begin(kUnitRows);
    kernels->spin_tiles(1 << 16);  // the units take up to 0.4 ms to wake
    const double tile_ns = time_of(kernels->spin_tiles, 1 << 12);
    kernels->end();
    return std::min(kMostSlowness, std::max(1., tile_ns / (32 * vector_ns)));
}

}  // namespace

double split_slowness() {
    static const double slowness = measure_slowness();
    return slowness;
}

// ---------------------------------------------------------------- B

namespace {

// Rounds to nearest, ties to even; NaN stays NaN.
uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bf16(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

enum { kTileValues = 16 * kSplitK };  // of B

}  // namespace

size_t split_panel_size(int terms, size_t steps) { return steps * terms * 2 * kTileValues; }

size_t split_packed_size(int terms, size_t n, size_t steps) {
    return split_panel_size(terms, steps) / 2 * ((n + 15) / 16);
}

namespace {

// The place of value k of column j, in a vector of 16 columns of a step, bf16.
size_t place_in_step(const SplitGemmKernels& kernels, size_t k, size_t j) {
    const size_t together = kernels.quads ? 4 : 2;
    return k / together * together * 16 + j * together + k % together;
}

// The place of value k of column j in a panel with this many vectors of 16 columns, f32: words from
// its begin.
size_t float_place(size_t vectors, size_t k, size_t j) {
    return ((k / kSplitK * vectors + j / 16) * kSplitK + k % kSplitK) * 16 + j % 16;
}

void pack_floats(const float* src, size_t ld, const int* order, size_t n, size_t steps,
                 uint16_t* packed) {
    for (size_t j = 0; j < (n + 15) / 16 * 16; j++) {
        const size_t panel = j / kUnitColumns, n0 = panel * kUnitColumns;
        const size_t vectors = n - n0 > 16 ? 2 : 1;
        float* const to = (float*)(packed + panel * split_panel_size(2, steps));
        for (size_t k = 0; k < steps * kSplitK; k++)
            to[float_place(vectors, k, j - n0)] =
                j < n && order[k] >= 0 ? src[j * ld + order[k]] : 0.f;
    }
}

void unpack_floats(const uint16_t* packed, const int* order, size_t n, size_t k, size_t ld,
                   float* dst) {
    const size_t panel_size = split_panel_size(2, split_steps(k));
    for (size_t j = 0; j < n; j++) {
        const size_t panel = j / kUnitColumns, n0 = panel * kUnitColumns;
        const size_t vectors = n - n0 > 16 ? 2 : 1;
        const float* const from = (const float*)(packed + panel * panel_size);
        for (size_t i = 0; i < k; i++)
            if (!order || order[i] >= 0)
                dst[j * ld + (order ? (size_t)order[i] : i)] =
                    from[float_place(vectors, i, j - n0)];
    }
}

}  // namespace

void split_pack(const SplitGemmKernels& kernels, const float* src, size_t ld, const int* order,
                size_t n, size_t steps, uint16_t* packed) {
    if (kernels.floats) return pack_floats(src, ld, order, n, steps, packed);
    const int terms = kernels.b_terms();
    for (size_t n0 = 0; n0 < n; n0 += kUnitColumns) {
        const size_t vectors = n - n0 > 16 ? 2 : 1;
        uint16_t* panel = packed + n0 / kUnitColumns * split_panel_size(terms, steps);
        for (size_t j = 0; j < vectors * 16; j++) {
            const float* column = src + (n0 + j) * ld;
            for (size_t k = 0; k < steps * kSplitK; k++) {
                const size_t step = k / kSplitK, kk = k % kSplitK;
                uint16_t* out = panel + (step * terms * vectors + j / 16) * kTileValues +
                                place_in_step(kernels, kk, j % 16);
                float rest = n0 + j < n && order[k] >= 0 ? column[order[k]] : 0.f;
                for (int t = 0; t < terms; t++, out += vectors * kTileValues) {
                    *out = to_bf16(rest);
                    rest -= from_bf16(*out);
                }
            }
        }
    }
}

void split_unpack(const SplitGemmKernels& kernels, const uint16_t* packed, const int* order,
                  size_t n, size_t k, size_t ld, float* dst) {
    if (kernels.floats) return unpack_floats(packed, order, n, k, ld, dst);
    const int terms = kernels.b_terms();
    const size_t steps = split_steps(k);
    for (size_t j = 0; j < n; j++) {
        const size_t panel = j / kUnitColumns, column = j % kUnitColumns;
        const size_t vectors = n - panel * kUnitColumns > 16 ? 2 : 1;
        const uint16_t* const from = packed + panel * split_panel_size(terms, steps);
        for (size_t i = 0; i < k; i++) {
            if (order && order[i] < 0) continue;
            const size_t step = i / kSplitK, kk = i % kSplitK;
            const uint16_t* in = from + (step * terms * vectors + column / 16) * kTileValues +
                                 place_in_step(kernels, kk, column % 16);
            float value = from_bf16(*in);
            for (int t = 1; t < terms && isfinite(value); t++)
                value += from_bf16(in[t * vectors * kTileValues]);
            dst[j * ld + (order ? (size_t)order[i] : i)] = value;
        }
    }
}

}  // namespace quoll
