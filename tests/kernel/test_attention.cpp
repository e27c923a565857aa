// Every kernel of the attention family on every ISA against double precision, within guard pages.
#include <gtest/gtest.h>
#include <math.h>

#include <algorithm>
#include <random>

#include "guarded.h"
#include "layer/cpu/attention/attention.h"
#include "layer/cpu/common/kernel_set.h"

using namespace quoll;

namespace {

void fill(Guarded<float>& values) {
    static std::mt19937 rng(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& x : values) x = uniform(rng);
}

const size_t kLengths[] = {1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 67, 130};

void check_dot_rows(const AttentionKernels& k) {
    for (size_t n : kLengths) {
        for (size_t count : {1, 2, 7, 8, 19}) {
            const size_t step = n + count % 3;
            Guarded<float> x(n), rows((count - 1) * step + n), out(count);
            fill(x), fill(rows);
            k.dot_rows(x.data(), n, rows.data(), step, count, 0.5f, out.data());
            for (size_t j = 0; j < count; j++) {
                double want = 0;
                for (size_t i = 0; i < n; i++) want += (double)x[i] * rows[j * step + i];
                ASSERT_NEAR(want / 2, out[j], 1e-6 * (double)n) << n << " values, row " << j;
            }
        }
    }
}

void check_sum_rows(const AttentionKernels& k) {
    for (size_t n : kLengths) {
        for (size_t count : {1, 2, 7, 8, 19}) {
            const size_t step = n + count % 3;
            Guarded<float> x(count), rows((count - 1) * step + n), out(n);
            fill(x), fill(rows);
            k.sum_rows(x.data(), count, rows.data(), step, n, 0.5f, out.data());
            for (size_t i = 0; i < n; i++) {
                double want = 0;
                for (size_t j = 0; j < count; j++) want += (double)x[j] * rows[j * step + i];
                ASSERT_NEAR(want / 2, out[i], 1e-6 * (double)count)
                    << count << " rows, value " << i;
            }
        }
    }
}

void check_sum_grid(const AttentionKernels& k) {
    for (size_t width : kLengths) {
        for (size_t height : {1, 2, 7}) {
            Guarded<float> rows(height), columns(width), out(height * width);
            fill(rows), fill(columns);
            k.sum_grid(rows.data(), height, columns.data(), width, out.data());
            for (size_t i = 0; i < height * width; i++)
                ASSERT_EQ(rows[i / width] + columns[i % width], out[i]) << i << " of " << width;
        }
    }
}

void check_turn(TurnRow kernel, bool pairs, bool own) {
    for (size_t half : kLengths) {
        const size_t second = own ? half : 0;
        Guarded<float> x(2 * half), c(half + second), s(half + second), out(2 * half);
        fill(x), fill(c), fill(s);
        kernel(x.data(), c.data(), s.data(), half, second, out.data());
        for (size_t i = 0; i < half; i++) {
            const size_t a = pairs ? 2 * i : i, b = pairs ? 2 * i + 1 : half + i;
            ASSERT_NEAR((double)x[a] * c[i] - (double)x[b] * s[i], out[a], 1e-6) << i;
            ASSERT_NEAR((double)x[a] * s[i + second] + (double)x[b] * c[i + second], out[b], 1e-6);
        }
    }
}

void check_turn_halves(const AttentionKernels& k) {
    check_turn(k.turn_halves, false, false);
    check_turn(k.turn_halves, false, true);
}
void check_turn_pairs(const AttentionKernels& k) { check_turn(k.turn_pairs, true, false); }

#define QUOLL_ATTENTION(name, type)                       \
    TEST(Attention, name) {                               \
        for (Isa isa : available_isas()) {                \
            SCOPED_TRACE(isa_name(isa));                  \
            check_##name(*kernel_set(isa).attention);     \
            if (testing::Test::HasFatalFailure()) return; \
        }                                                 \
    }
#include "layer/cpu/attention/kernels.inc"
#undef QUOLL_ATTENTION

}  // namespace
