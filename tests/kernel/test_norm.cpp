// Every kernel of the norm family on every ISA against double precision, within guard pages.
#include <gtest/gtest.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/norm/norm.h"

using namespace quoll;

namespace {

std::vector<float> random_values(size_t n, float low, float high) {
    static std::mt19937 rng(11);
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> values(n);
    for (float& x : values) x = uniform(rng);
    return values;
}

// One reduction over lengths and periods; terms up to 10, hence the absolute error.
void check_reduce(NormReduce kernel, double first, std::function<double(double, double)> add) {
    for (size_t period : {1, 3, 4, 8, 16}) {
        for (size_t runs : {1, 2, 3, 5, 16, 67, 300}) {
            const size_t n = runs * period;
            const std::vector<float> values = random_values(n, -5, 5);
            const std::vector<float> centre = random_values(period, -5, 5);
            for (bool centred : {false, true}) {
                Guarded<float> data(n, centred), out(period);
                std::copy(values.begin(), values.end(), data.data());
                kernel(data.data(), n, period, centred ? centre.data() : nullptr, out.data());
                for (size_t j = 0; j < period; j++) {
                    double want = first;
                    for (size_t i = j; i < n; i += period)
                        want = add(want, values[i] - (centred ? (double)centre[j] : 0.0));
                    ASSERT_NEAR(want, out[j], 1e-5 * (double)runs + 1e-6 * fabs(want))
                        << "period " << period << ", " << runs << " runs, lane " << j;
                }
            }
        }
    }
}

void check_sum(const NormKernels& k) {
    check_reduce(k.sum, 0, [](double a, double x) { return a + x; });
}
void check_sum_abs(const NormKernels& k) {
    check_reduce(k.sum_abs, 0, [](double a, double x) { return a + fabs(x); });
}
void check_sum_squares(const NormKernels& k) {
    check_reduce(k.sum_squares, 0, [](double a, double x) { return a + x * x; });
}
void check_reduce_max(const NormKernels& k) {
    check_reduce(k.reduce_max, -INFINITY, [](double a, double x) { return std::max(a, x); });
}
void check_reduce_min(const NormKernels& k) {
    check_reduce(k.reduce_min, INFINITY, [](double a, double x) { return std::min(a, x); });
}

// Shares of `count` values `step` apart.
void expect_softmax(const float* values, const float* got, size_t count, size_t step,
                    double error = 2e-6) {
    double most = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; i++) most = std::max(most, (double)values[i * step]);
    for (size_t i = 0; i < count; i++) sum += exp(values[i * step] - most);
    for (size_t i = 0; i < count; i++) {
        const double want = exp(values[i * step] - most) / sum;
        ASSERT_NEAR(want, got[i * step], error * want + 1e-30) << "value " << i << " of " << count;
    }
}

// Rows and columns in one: a row is columns of width 1.
void expect_log_softmax(const float* values, const float* got, size_t count, size_t step) {
    double most = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; i++) most = std::max(most, (double)values[i * step]);
    for (size_t i = 0; i < count; i++) sum += exp(values[i * step] - most);
    for (size_t i = 0; i < count; i++)
        ASSERT_NEAR(values[i * step] - most - log(sum), got[i * step], 1e-5) << i;
}

void check_scale_centred(const NormKernels& k) {
    for (size_t period : {1, 2, 3, 4, 8, 16, 19, 32}) {
        for (size_t repeats = 0; repeats < 24; repeats++) {
            const size_t n = period * repeats;
            const float low = repeats % 4 == 1 ? 0.f : -INFINITY;
            const float high = repeats % 4 == 2 ? 1.f : INFINITY;
            // Means far from zero: what is left of the values is small.
            const std::vector<float> mean = random_values(period, 1000, 1010),
                                     factor = random_values(period, 100, 200),
                                     term = random_values(period, -1, 1);
            Guarded<float> data(n, repeats % 2);
            for (size_t i = 0; i < n; i++) data[i] = mean[i % period] + (float)(i % 3) / 64;
            k.scale_centred(data.data(), n, period, mean.data(), factor.data(),
                            repeats % 3 ? term.data() : nullptr, low, high);
            for (size_t i = 0; i < n; i++) {
                const size_t j = i % period;
                const double centred = (float)(mean[j] + (float)(i % 3) / 64) - mean[j];
                const double scaled = centred * factor[j] + (repeats % 3 ? term[j] : 0);
                const double want = std::min<double>(high, std::max<double>(low, scaled));
                ASSERT_NEAR(want, data[i], 1e-6 * (1 + fabs(want))) << period << " " << i;
            }
        }
    }
}

void check_log_softmax_row(const NormKernels& k) {
    for (size_t n = 1; n <= 70; n++) {
        const std::vector<float> values = random_values(n, -1010, -1000);
        Guarded<float> data(n);
        std::copy(values.begin(), values.end(), data.data());
        k.log_softmax_row(data.data(), n);
        expect_log_softmax(values.data(), data.data(), n, 1);
    }
}

void check_log_softmax_columns(const NormKernels& k) {
    for (size_t width = 1; width <= 35; width++) {
        for (size_t count : {1, 2, 7}) {
            const size_t step = width + width % 3, n = (count - 1) * step + width;
            const std::vector<float> values = random_values(n, -1010, -1000);
            Guarded<float> data(n);
            std::copy(values.begin(), values.end(), data.data());
            k.log_softmax_columns(data.data(), count, step, width);
            for (size_t x = 0; x < width; x++)
                expect_log_softmax(values.data() + x, data.data() + x, count, step);
        }
    }
}

void check_scaled_softmax_row(SoftmaxRow softmax_row, double error) {
    for (size_t n = 1; n <= 70; n++) {
        const std::vector<float> values = random_values(n, -3, 3), added = random_values(n, -3, 3);
        std::vector<float> sums(n);
        for (size_t i = 0; i < n; i++) sums[i] = values[i] * 0.5f + added[i];
        Guarded<float> data(n), mask(n);
        std::copy(values.begin(), values.end(), data.data());
        std::copy(added.begin(), added.end(), mask.data());
        softmax_row(data.data(), n, 0.5f, mask.data(), nullptr);
        expect_softmax(sums.data(), data.data(), n, 1, error);
    }
    for (size_t at : {0, 17, 36}) {
        std::vector<float> infinite(37, 1.f);
        infinite[at] = NAN;
        softmax_row(infinite.data(), infinite.size(), 1.f, nullptr, nullptr);
        for (float x : infinite) ASSERT_TRUE(isnan(x)) << at;
    }
    std::vector<float> hidden(37, -INFINITY);
    hidden[5] = 1.f, hidden[36] = 1.f;
    softmax_row(hidden.data(), hidden.size(), 1.f, nullptr, nullptr);
    for (size_t i = 0; i < hidden.size(); i++)
        ASSERT_EQ(hidden[i], i == 5 || i == 36 ? .5f : 0.f) << i;
}

// Undivided, and rounded to bf16: 8 significant bits are left.
void check_rounded_softmax_row(SoftmaxRow softmax_row, double error) {
    for (size_t n = 1; n <= 70; n++) {
        const std::vector<float> values = random_values(n, -8, 3);
        const float most = *std::max_element(values.begin(), values.end());
        Guarded<float> data(n);
        std::copy(values.begin(), values.end(), data.data());
        float total = 0;
        softmax_row(data.data(), n, 0.5f, nullptr, &total);
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            const double want = exp(0.5 * ((double)values[i] - most));
            ASSERT_NEAR(data[i], want, want * (0x1p-8 + error));
            uint32_t bits;
            memcpy(&bits, &data[i], sizeof(bits));
            ASSERT_EQ(bits & 0xffff, 0u);
            sum += data[i];
        }
        ASSERT_NEAR(total, sum, sum * 1e-6);
    }
}

void check_softmax_row(SoftmaxRow softmax_row, double error) {
    for (size_t n = 1; n <= 70; n++) {
        // Far from zero, so that nothing but the values themselves may count.
        const std::vector<float> values = random_values(n, -1010, -1000);
        Guarded<float> data(n);
        std::copy(values.begin(), values.end(), data.data());
        softmax_row(data.data(), n, 1.f, nullptr, nullptr);
        expect_softmax(values.data(), data.data(), n, 1, error);
    }
    check_scaled_softmax_row(softmax_row, error);
    check_rounded_softmax_row(softmax_row, error + 1e-6);
}
void check_softmax_row(const NormKernels& k) { check_softmax_row(k.softmax_row, 2e-6); }
void check_softmax_row_bf16(const NormKernels& k) {
    check_softmax_row(k.softmax_row_bf16, 0x1p-12);
}

void check_softmax_columns(const NormKernels& k) {
    for (size_t width = 1; width <= 35; width++) {
        for (size_t count : {1, 2, 7}) {
            const size_t step = width + width % 3, n = (count - 1) * step + width;
            const std::vector<float> values = random_values(n, -1010, -1000);
            Guarded<float> data(n);
            std::copy(values.begin(), values.end(), data.data());
            k.softmax_columns(data.data(), count, step, width);
            for (size_t x = 0; x < width; x++)
                expect_softmax(values.data() + x, data.data() + x, count, step);
            for (size_t i = width; i < n; i++) {
                if (i % step >= width) {
                    ASSERT_EQ(values[i], data[i]) << "between the columns";
                }
            }
        }
    }
}

void check_normalize_row(const NormKernels& k) {
    for (size_t n = 1; n <= 70; n++) {
        const std::vector<float> values = random_values(n, 3, 5), gamma = random_values(n, -2, 2),
                                 beta = random_values(n, -2, 2);
        double mean = 0, variance = 0;
        for (float x : values) mean += x / (double)n;
        for (float x : values) variance += (x - mean) * (x - mean) / (double)n;
        for (bool affine : {false, true}) {
            Guarded<float> data(n), g(n), b(n);
            std::copy(values.begin(), values.end(), data.data());
            std::copy(gamma.begin(), gamma.end(), g.data());
            std::copy(beta.begin(), beta.end(), b.data());
            k.normalize_row(data.data(), n, 0.01f, affine ? g.data() : nullptr,
                            affine ? b.data() : nullptr);
            for (size_t i = 0; i < n; i++) {
                const double x = (values[i] - mean) / sqrt(variance + 0.01f);
                ASSERT_NEAR(affine ? x * gamma[i] + beta[i] : x, data[i], 3e-5) << i << " of " << n;
            }
        }
    }
}

void check_rms_row(const NormKernels& k) {
    for (size_t n = 1; n <= 70; n++) {
        const std::vector<float> values = random_values(n, 1, 5), gamma = random_values(n, -2, 2);
        double squares = 0;
        for (float x : values) squares += (double)x * x / (double)n;
        for (bool affine : {false, true}) {
            Guarded<float> data(n), g(n);
            std::copy(values.begin(), values.end(), data.data());
            std::copy(gamma.begin(), gamma.end(), g.data());
            k.rms_row(data.data(), n, 0.01f, affine ? g.data() : nullptr);
            for (size_t i = 0; i < n; i++) {
                const double x = values[i] / sqrt(squares + 0.01f);
                ASSERT_NEAR(affine ? x * gamma[i] : x, data[i], 3e-6) << i << " of " << n;
            }
        }
    }
}

void check_lrn(const NormKernels& k, int blocks, int pack, int before, int after, float beta) {
    const size_t pixels = 23, step = pixels * pack + 4, n = (blocks - 1) * step + pixels * pack;
    const std::vector<float> values = random_values(n, -3, 3);
    Guarded<float> in(n), out(n);
    Guarded<float> scratch(lrn_scratch(blocks, pack, before + after));
    std::copy(values.begin(), values.end(), in.data());
    k.lrn_across({in.data(), out.data(), step, blocks, pack, before, after, 0.2f, 1.5f, beta,
                  pixels, scratch.data()});
    const auto at = [&](size_t pixel, int c) { return c / pack * step + pixel * pack + c % pack; };
    const int channels = blocks * pack;
    for (size_t i = 0; i < pixels; i++) {
        for (int c = 0; c < channels; c++) {
            double sum = 0;
            for (int d = std::max(0, c - before); d <= std::min(channels - 1, c + after); d++)
                sum += (double)values[at(i, d)] * values[at(i, d)];
            const double want = values[at(i, c)] * pow(1.5 + 0.2f * sum, -(double)beta);
            ASSERT_NEAR(want, out[at(i, c)], 1e-6 + 4e-6 * fabs(want))
                << "pixel " << i << " channel " << c << " pack " << pack << " before " << before
                << " after " << after;
        }
    }
}

void check_lrn_across(const NormKernels& k) {
    for (int pack : {1, 4, 8, 16})
        for (int blocks : {1, 3, 20 / pack + 1})
            for (int half : {0, 1, 2, 7})
                for (int after : {half, std::max(half - 1, 0)})
                    check_lrn(k, blocks, pack, half, after, half == 1 ? 1.3f : .75f);
}

#define QUOLL_NORM(name, type, function)                  \
    TEST(Norm, name) {                                    \
        for (Isa isa : available_isas()) {                \
            SCOPED_TRACE(isa_name(isa));                  \
            check_##name(*kernel_set(isa).norm);          \
            if (testing::Test::HasFatalFailure()) return; \
        }                                                 \
    }
#include "layer/cpu/norm/kernels.inc"
#undef QUOLL_NORM

}  // namespace
