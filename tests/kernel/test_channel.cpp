// Every kernel of the channel family on every ISA against the definition in double.
#include <gtest/gtest.h>
#include <math.h>

#include <random>

#include "guarded.h"
#include "layer/cpu/channel/channel.h"
#include "layer/cpu/common/kernel_set.h"

using namespace quoll;

namespace {

double affine_case(double x, double a, double b) { return x * a + b; }
[[maybe_unused]] double affine_relu_case(double x, double a, double b) {
    return fmax(0, x * a + b);
}
double prelu_case(double x, double a, double) { return x < 0 ? x * a : x; }

struct Entry {
    const char* name;
    ChannelKernel ChannelKernels::*kernel;
    double (*expected)(double x, double a, double b);
};
const Entry kEntries[] = {
#define QUOLL_CHANNEL(name, functor) {#name, &ChannelKernels::name, name##_case},
#include "layer/cpu/channel/kernels.inc"
#undef QUOLL_CHANNEL
};

void fill(Guarded<float>& values, std::mt19937& rng) {
    for (float& v : values) v = std::uniform_real_distribution<float>(-1.f, 1.f)(rng);
}

void check(const Entry& entry, ChannelKernel kernel, size_t period, size_t repeats, bool with_a,
           bool with_b) {
    SCOPED_TRACE(std::string(entry.name) + " period " + std::to_string(period) + " x " +
                 std::to_string(repeats));
    std::mt19937 rng(3);
    const bool at_end = repeats % 2;
    const size_t n = period * repeats;
    Guarded<float> data(n, at_end), a(period, at_end), b(period, at_end);
    fill(data, rng), fill(a, rng), fill(b, rng);
    const std::vector<float> before(data.begin(), data.end());
    kernel(data.data(), n, period, with_a ? a.data() : nullptr, with_b ? b.data() : nullptr);
    for (size_t i = 0; i < n; i++) {
        const double expected =
            entry.expected(before[i], with_a ? a[i % period] : 1.0, with_b ? b[i % period] : 0.0);
        ASSERT_NEAR(data[i], expected, 2.5e-7) << "at " << i;
    }
}

TEST(Channel, periods) {
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        for (const Entry& entry : kEntries) {
            const ChannelKernel kernel = kernel_set(isa).channel->*entry.kernel;
            for (size_t period : {1, 2, 3, 4, 5, 8, 16, 19, 32, 40, 64, 77}) {
                for (size_t repeats = 0; repeats < 24; repeats++) {
                    check(entry, kernel, period, repeats, repeats % 3 != 0, repeats % 4 != 0);
                    if (HasFatalFailure()) return;
                }
            }
        }
    }
}

TEST(Channel, nan_stays) {
    for (Isa isa : available_isas()) {
        for (const Entry& entry : kEntries) {
            float data[3] = {1.f, NAN, -1.f};
            const float a = 2.f;
            (kernel_set(isa).channel->*entry.kernel)(data, 3, 1, &a, nullptr);
            EXPECT_TRUE(isnan(data[1])) << entry.name << " " << isa_name(isa);
            EXPECT_EQ(entry.expected(-1, a, 0), data[2]) << entry.name;
        }
    }
}

}  // namespace
