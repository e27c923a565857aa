// Every kernel of the pool family on every ISA against the definition in double.
#include <float.h>
#include <gtest/gtest.h>
#include <math.h>

#include <algorithm>
#include <random>
#include <vector>

#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/pool/pool.h"
#include "runtime/scalar.h"

using namespace quoll;

namespace {

enum Operation { Max, Average };

struct Entry {
    const char* name;
    const PoolWindowsKernel (PoolKernels::*kernels)[kPoolPacks];
    Operation operation;
    int columns, stride;  // 0: any
};
const Entry kEntries[] = {
#define QUOLL_POOL(name, operation, columns, stride) \
    {#name, &PoolKernels::name, operation, columns, stride},
#include "layer/cpu/pool/kernels.inc"
#undef QUOLL_POOL
};

struct Rng {
    std::mt19937 engine{5};
    int below(int n) { return (int)(engine() % (unsigned)n); }
    template <class T>
    void fill(T& values) {
        std::uniform_real_distribution<float> uniform(-1.f, 1.f);
        for (float& v : values) v = uniform(engine);
    }
};

// What a window of `pack` interleaved lanes should give.
double expected(Operation operation, const PoolWindows& w, int pack, int index, int lane) {
    double result = operation == Max ? w.scale : 0;
    for (int y = 0; y < w.rows; y++) {
        for (int x = 0; x < w.columns; x++) {
            const size_t element = (size_t)index * w.stride + x;
            const double v = w.in[y * w.row_step + element * pack + lane];
            result = operation == Max ? std::max(result, v) : result + v;
        }
    }
    return operation == Max ? result : result * w.scale;
}

// Windows over rows of exactly as many elements as they need, between guard pages.
void check_windows(PoolWindowsKernel kernel, Operation operation, int pack, PoolWindows w,
                   bool at_end, Rng& rng) {
    const int width = w.columns ? (w.count - 1) * w.stride + w.columns : 0;
    Guarded<float> in((size_t)w.rows * width * pack, at_end);
    Guarded<float> out((size_t)w.count * pack, at_end);
    rng.fill(in);
    w.in = in.data(), w.row_step = (size_t)width * pack, w.out = out.data();
    kernel(w);
    for (int i = 0; i < w.count; i++)
        for (int lane = 0; lane < pack; lane++)
            ASSERT_NEAR(out[i * pack + lane], expected(operation, w, pack, i, lane),
                        operation == Max ? 0 : 1e-7 * (1 + w.rows * w.columns))
                << w.rows << " x " << w.columns << " stride " << w.stride << " count " << w.count
                << " index " << i;
}

PoolWindows random_windows(int columns, int stride, Rng& rng) {
    PoolWindows w = {};
    w.rows = rng.below(5);
    w.columns = columns ? columns : rng.below(8);
    w.stride = stride ? stride : 1 + rng.below(4);
    w.count = 1 + rng.below(23);
    w.scale = rng.below(2) ? 0.37f : -0.5f;
    return w;
}

TEST(Pool, windows) {
    for (Isa isa : available_isas()) {
        const KernelSet& set = kernel_set(isa);
        for (const Entry& entry : kEntries) {
            for (int i = 0; i < kPoolPacks; i++) {
                const PoolWindowsKernel kernel = (set.pool->*entry.kernels)[i];
                ASSERT_EQ(kernel != nullptr, kPoolPack[i] <= set.lanes);
                if (!kernel) continue;
                SCOPED_TRACE(std::string(entry.name) + " " + isa_name(isa) + " pack " +
                             std::to_string(kPoolPack[i]));
                Rng rng;
                for (int n = 0; n < 100; n++) {
                    check_windows(kernel, entry.operation, kPoolPack[i],
                                  random_windows(entry.columns, entry.stride, rng), n % 2, rng);
                    if (HasFatalFailure()) return;
                }
            }
        }
    }
}

TEST(Pool, planar_across) {
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        for (Operation operation : {Max, Average}) {
            const PoolKernels& k = *kernel_set(isa).pool;
            const PoolWindowsKernel kernel =
                (operation == Max ? k.planar_max : k.planar_average).across;
            Rng rng;
            for (int n = 0; n < 200; n++) {
                PoolWindows w = random_windows(0, n % 2, rng);
                w.rows = 1, w.count += 20 * (n % 5);
                check_windows(kernel, operation, 1, w, n % 2, rng);
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST(Pool, planar_rows_and_runs) {
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        for (Operation operation : {Max, Average}) {
            const PoolKernels& k = *kernel_set(isa).pool;
            const PoolPlanarKernels& planar = operation == Max ? k.planar_max : k.planar_average;
            Rng rng;
            for (int n = 1; n < 140; n++) {
                const int rows = rng.below(4);
                Guarded<float> in((size_t)rows * n, n % 2), out((size_t)n, n % 2);
                rng.fill(in);
                planar.rows(in.data(), (size_t)n, rows, out.data(), (size_t)n);
                for (int x = 0; x < n; x++) {
                    const float scale = operation == Max ? -INFINITY : 1.f;
                    const PoolWindows w = {in.data() + x, (size_t)n, rows, 1, 1, nullptr, 1, scale};
                    const double want = expected(operation, w, 1, 0, 0);
                    ASSERT_TRUE(out[x] == want || fabs(out[x] - want) <= 1e-6) << out[x];
                }
                Guarded<float> run((size_t)n, n % 2);
                rng.fill(run);
                const PoolWindows w = {run.data(), 0, 1, n, 1, nullptr, 1, 0.25f};
                ASSERT_NEAR(planar.run(run.data(), (size_t)n, 0.25f),
                            expected(operation, w, 1, 0, 0), operation == Max ? 0 : 1e-7 * n);
            }
        }
    }
}

// Maxima of bf16 and half values, some of them infinite or NaN of either sign.
TEST(Pool, keys) {
    const auto pick = [](Rng& rng, bool bf16) {
        const int special[] = {0x7f80, 0xff80, 0x7fff, 0xffff, 0x7c00, 0xfc00, 0, 0x8000};
        const int bits = rng.below(40) == 0 ? special[rng.below(8)] : rng.below(1 << 16);
        const bool nan = (bits & 0x7fff) > (bf16 ? 0x7f80 : 0x7c00);
        return (uint16_t)(nan && rng.below(8) ? bits & 0x83ff : bits);
    };
    for (Isa isa : available_isas()) {
        const KernelSet& set = kernel_set(isa);
        Rng rng;
        for (int n = 0; n < 600; n++) {
            const bool bf16 = n % 2;
            const auto widen = bf16 ? float_from_bfloat : float_from_half;
            const int packs[] = {1, 4, 8, 16};
            PoolKeyWindows w = {};
            w.pack = packs[rng.below(4)], w.nans = bf16 ? kBf16Nans : kF16Nans;
            w.columns = 1 + rng.below(4), w.stride = 1 + rng.below(3), w.count = 1 + rng.below(19);
            const int rows = 1 + rng.below(4), width = (w.count - 1) * w.stride + w.columns;
            const size_t row = (size_t)width * w.pack;
            Guarded<uint16_t> in(rows * row, n % 3), out((size_t)w.count * w.pack, n % 3);
            Guarded<int16_t> keys(row, n % 3);
            for (uint16_t& v : in) v = pick(rng, bf16);
            set.pool->key_rows(in.data(), row, rows, w.nans, keys.data(), row);
            w.in = keys.data(), w.out = out.data();
            set.pool->key_across(w);
            for (int i = 0; i < w.count * w.pack; i++) {
                float most = -INFINITY;
                const size_t first = (size_t)(i / w.pack) * w.stride * w.pack + i % w.pack;
                for (int y = 0; y < rows; y++)
                    for (int x = 0; x < w.columns; x++) {
                        const float v = widen(in[y * row + first + (size_t)x * w.pack]);
                        if (v > most || isnan(v)) most = isnan(most) ? most : v;
                    }
                const float got = widen(out[i]);
                ASSERT_TRUE(isnan(most) ? isnan(got) : got == most)
                    << isa_name(isa) << " pack " << w.pack << ": " << got << " not " << most;
            }
        }
    }
}

TEST(Pool, selection) {
    const PoolKernels& k = *host_kernel_set().pool;
    EXPECT_EQ(k.max_k2s2[0], select_pool_windows(k, true, 4, 2, 2));
    EXPECT_EQ(k.average_k3s2[0], select_pool_windows(k, false, 4, 3, 2));
    EXPECT_EQ(k.max_any[0], select_pool_windows(k, true, 4, 2, 1));
    EXPECT_EQ(k.average_any[0], select_pool_windows(k, false, 4, 7, 1));
    EXPECT_EQ(nullptr, select_pool_windows(k, true, 1, 2, 2));
}

}  // namespace
