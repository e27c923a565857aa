// Every kernel of the unary family on every ISA against double-precision libm.
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <random>
#include <vector>

#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/unary/unary.h"
#include "quoll/mat.h"
#include "ulp.h"

using namespace quoll;

namespace {

typedef double (*Reference)(double x, const float* p);

// What a kernel is compared with. Error allowed: ulp units in the last place of the exact result
// plus absolute + relative * |x| (a difference such as e^x - 1 cannot be relatively exact).
struct Case {
    Reference reference;
    std::vector<float> params;
    float low, high;  // random arguments are drawn from here
    double ulp, absolute, relative;
    bool nan_in_nan_out;
};

const double kEps = 0x1p-23;

double clamp01(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
double linear(double x, const float* p) { return (float)fma(x, (double)p[0], (double)p[1]); }

#define REFERENCE(name, ...)      \
    Case name##_case() {          \
        using P = const float*;   \
        (void)sizeof(P);          \
        return Case{__VA_ARGS__}; \
    }
#define F(expression)                        \
    [](double x, const float* p) -> double { \
        (void)p;                             \
        return expression;                   \
    }
REFERENCE(abs, F(fabs(x)), {}, -100, 100, 0, 0, 0, true)
REFERENCE(neg, F(-x), {}, -100, 100, 0, 0, 0, true)
REFERENCE(floor, F(floor(x)), {}, -100, 100, 0, 0, 0, true)
REFERENCE(ceil, F(ceil(x)), {}, -100, 100, 0, 0, 0, true)
REFERENCE(round, F(nearbyint(x)), {}, -100, 100, 0, 0, 0, true)
REFERENCE(trunc, F(trunc(x)), {}, -100, 100, 0, 0, 0, true)
REFERENCE(sign, F(isnan(x) ? x : (x > 0) - (x < 0)), {}, -100, 100, 0, 0, 0, true)
REFERENCE(square, F(x* x), {}, -100, 100, 1, 0, 0, true)
REFERENCE(sqrt, F(sqrt(x)), {}, 0, 100, 1, 0, 0, true)
REFERENCE(rsqrt, F(1 / sqrt(x)), {}, 0, 100, 2, 0, 0, true)
REFERENCE(reciprocal, F(1 / x), {}, -100, 100, 1, 0, 0, true)
REFERENCE(exp, F(exp(x)), {}, -110, 95, 2, 0, 0, true)
REFERENCE(log, F(log(x)), {}, 0, 50, 2, 0, 0, true)
REFERENCE(log10, F(log10(x)), {}, 0, 50, 4, 0, 0, true)
REFERENCE(log1p, F(log1p(x)), {}, -1.1f, 50, 2, 0, 0, true)
REFERENCE(expm1, F(expm1(x)), {}, -25, 95, 2, 0, 0, true)
REFERENCE(sinh, F(sinh(x)), {}, -95, 95, 3, 0, 0, true)
REFERENCE(cosh, F(cosh(x)), {}, -95, 95, 3, 0, 0, true)
REFERENCE(asinh, F(asinh(x)), {}, -1e5, 1e5, 4, 0, 0, true)
REFERENCE(acosh, F(acosh(x)), {}, 0.9f, 1e5, 4, 0, 0, true)
REFERENCE(atanh, F(atanh(x)), {}, -1.1f, 1.1f, 4, 0, 0, true)
REFERENCE(sin, F(sin(x)), {}, -9000, 9000, 3, 0, 0, true)
REFERENCE(cos, F(cos(x)), {}, -9000, 9000, 3, 0, 0, true)
REFERENCE(tan, F(tan(x)), {}, -9000, 9000, 5, 0, 0, true)
REFERENCE(asin, F(asin(x)), {}, -1.1f, 1.1f, 4, 0, 0, true)
REFERENCE(acos, F(acos(x)), {}, -1.1f, 1.1f, 4, 0, 0, true)
REFERENCE(atan, F(atan(x)), {}, -8, 8, 3, 0, 0, true)
REFERENCE(tanh, F(tanh(x)), {}, -11, 11, 3, 0, 0, true)
REFERENCE(erf, F(erf(x)), {}, -5, 5, 2, 0, 0, true)
REFERENCE(sigmoid, F(1 / (1 + exp(-x))), {}, -90, 40, 4, 1e-38, 0, true)
REFERENCE(swish, F(isinf(x) && x < 0 ? 0 : x / (1 + exp(-(double)(float)(p[0] * x)))), {1.25f}, -70,
          40, 4, 1e-36, 0, true)
REFERENCE(mish, F(isinf(x) && x < 0 ? 0 : x * tanh(log1p(exp(x)))), {}, -90, 40, 6, 1e-36, 0, true)
REFERENCE(softplus, F(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))), {}, -90, 90, 4, 0, 0, true)
REFERENCE(gelu, F(isinf(x) && x < 0 ? 0 : x * .5 * (1 + erf(x * M_SQRT1_2))), {}, -6, 6, 3, 0,
          2 * kEps, true)
REFERENCE(gelu_fast,
          F(isinf(x) && x < 0
                ? 0
                : x * .5 * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)))),
          {}, -6, 6, 3, 0, 2 * kEps, true)
// An eighth of the 2^-8 that rounding to bf16 costs.
const double kBf16Ulp = 0x1p-11 / kEps;
#define BF16_REFERENCE(name, near_zero)               \
    Case name##_bf16_case() {                         \
        Case c = name##_case();                       \
        c.ulp = kBf16Ulp, c.absolute += near_zero;    \
        return c;                                     \
    }
BF16_REFERENCE(sigmoid, 0)
BF16_REFERENCE(tanh, 0)
BF16_REFERENCE(swish, 0)
BF16_REFERENCE(mish, 0)
BF16_REFERENCE(gelu, 0x1p-20)
BF16_REFERENCE(gelu_fast, 0)
#undef BF16_REFERENCE
REFERENCE(relu, F(x < 0 ? (p[0] == 0 ? 0 : x * p[0]) : x), {0.1f}, -9, 9, 1, 0, 0, true)
REFERENCE(clip, F(x<p[0] ? p[0] : x> p[1] ? p[1] : x), {-1.5f, 6.f}, -9, 9, 0, 0, 0, true)
REFERENCE(hardsigmoid, F(isnan(x) ? x : clamp01(x* p[0] + p[1])), {0.2f, 0.5f}, -9, 9, 2, kEps, 0,
          true)
REFERENCE(hardswish,
          F(isnan(x)              ? x
            : x* p[0] + p[1] <= 0 ? 0
                                  : x * clamp01(x * p[0] + p[1])),
          {1 / 6.f, 0.5f}, -9, 9, 2, 0, 2 * kEps, true)
REFERENCE(elu, F(x < 0 ? p[0] * expm1(x) : x), {0.7f}, -9, 9, 2, kEps, 0, true)
REFERENCE(celu, F(x < 0 ? p[0] * expm1(x / p[0]) : x), {1.3f}, -9, 9, 2, 2 * kEps, 0, true)
REFERENCE(selu, F(p[1] * (x < 0 ? p[0] * expm1(x) : x)), {1.67326324f, 1.050700987f}, -9, 9, 2,
          4 * kEps, 0, true)
REFERENCE(shrink,
          F(x<-p[1] ? x + p[0] : x> p[1] ? x - p[0]
            : isnan(x)                   ? x
                                         : 0),
          {0.3f, 0.5f}, -2, 2, 1, 0, 0, true)
REFERENCE(threshold, F(x > p[0] ? 1 : 0), {0.25f}, -2, 2, 0, 0, 0, false)
REFERENCE(linear, F(x* p[0] + p[1]), {1.7f, -0.3f}, -9, 9, 1, 0, 2 * kEps, true)
REFERENCE(exp_linear, F(exp(linear(x, p))), {0.7f, 0.1f}, -9, 9, 12, 0, 0, true)
REFERENCE(log_linear, F(p[2] * log(linear(x, p))), {0.7f, 0.1f, 0.43f}, 0, 9, 5, kEps, 0, true)
REFERENCE(power, F(pow(linear(x, p), (double)p[2])), {1.5f, 0.2f, 2.5f}, 0, 9, 8, 0, 0, true)
REFERENCE(pow_base, F(pow((double)p[2], linear(x, p))), {0.7f, 0.1f, 3.f}, -9, 9, 12, 0, 0, true)
#undef F
#undef REFERENCE

struct Entry {
    const char* name;
    UnaryKernel UnaryKernels::*kernel;
    Case (*make_case)();
    size_t num_params;
};
const Entry kEntries[] = {
#define QUOLL_UNARY(name, functor, num_params) \
    {#name, &UnaryKernels::name, name##_case, num_params},
#include "layer/cpu/unary/kernels.inc"
#undef QUOLL_UNARY
};

void PrintTo(const Entry& e, std::ostream* os) { *os << e.name; }

class Unary : public ::testing::TestWithParam<Entry> {
protected:
    void SetUp() override {
        test_case = GetParam().make_case();
        ASSERT_EQ(test_case.params.size(), GetParam().num_params);
    }
    void check(float x, float got, Isa isa) {
        const double exact = test_case.reference(x, test_case.params.data());
        double allowed = test_case.ulp;
        if (isfinite(x) && isfinite(exact)) {
            allowed += (test_case.absolute + test_case.relative * fabs(x)) / ulp_of(exact);
        }
        ASSERT_LE(ulp_error(got, exact), allowed) << GetParam().name << "(" << x << ") = " << got
                                                  << ", exact " << exact << ", " << isa_name(isa);
    }
    Case test_case;
};

TEST_P(Unary, random_arguments) {
    std::mt19937 rng(7);
    std::uniform_real_distribution<float> uniform(test_case.low, test_case.high);
    const size_t n = 20011;
    std::vector<float> in(n), out(n);
    for (size_t i = 0; i < n; i++) {
        in[i] = uniform(rng);
        if (i % 4 == 3) in[i] *= ldexpf(1.f, -(int)(rng() % 40));
    }
    for (Isa isa : available_isas()) {
        (kernel_set(isa).unary->*GetParam().kernel)(in.data(), out.data(), n,
                                                    test_case.params.data());
        for (size_t i = 0; i < n; i++) check(in[i], out[i], isa);
    }
}

TEST_P(Unary, special_arguments) {
    const float special[] = {0.f,      -0.f,    INFINITY, -INFINITY, 1.f,     -1.f,   FLT_MAX,
                             -FLT_MAX, FLT_MIN, -FLT_MIN, 1e-42f,    -1e-42f, 0.5f,   -0.5f,
                             1.5f,     2.5f,    -2.5f,    1e10f,     -1e10f,  8192.f, 3.f};
    for (Isa isa : available_isas()) {
        const UnaryKernel kernel = kernel_set(isa).unary->*GetParam().kernel;
        for (float x : special) {
            float y = 99.f;
            kernel(&x, &y, 1, test_case.params.data());
            check(x, y, isa);
        }
        float y = 99.f, nan = NAN;
        kernel(&nan, &y, 1, test_case.params.data());
        if (test_case.nan_in_nan_out) {
            EXPECT_TRUE(isnan(y)) << isa_name(isa) << " gave " << y;
        } else {
            check(nan, y, isa);
        }
    }
}

// Every length up to a few registers, bases of every alignment, guard pages on both sides, in
// place: the results must be those of the whole array, bit for bit.
TEST_P(Unary, lengths_and_bounds) {
    const size_t most = 70;
    std::vector<float> in(most), whole(most);
    for (size_t i = 0; i < most; i++)
        in[i] = test_case.low + (test_case.high - test_case.low) * (float)i / most;
    for (Isa isa : available_isas()) {
        const UnaryKernel kernel = kernel_set(isa).unary->*GetParam().kernel;
        kernel(in.data(), whole.data(), most, test_case.params.data());
        for (size_t n = 0; n <= most; n++) {
            for (int variant = 0; variant < 3; variant++) {
                const size_t shift = variant == 2 ? 4 : 0;
                Guarded<float> a(n, variant != 1, shift), b(n, variant != 1, shift);
                memcpy(a.data(), in.data(), n * 4);
                kernel(a.data(), b.data(), n, test_case.params.data());
                ASSERT_EQ(memcmp(b.data(), whole.data(), n * 4), 0) << isa_name(isa) << " n " << n;
                kernel(a.data(), a.data(), n, test_case.params.data());
                ASSERT_EQ(memcmp(a.data(), whole.data(), n * 4), 0) << isa_name(isa) << " n " << n;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Unary, ::testing::ValuesIn(kEntries),
                         [](const auto& info) { return std::string(info.param.name); });

// Of pairs of half floats: the product of what the slope rounds to, rounded once.
TEST(KernelSet, relu_of_half_floats) {
    if (!host_kernel_set().f16) GTEST_SKIP() << "no arithmetic of half floats";
    const UnaryKernel relu = host_kernel_set().f16->unary->relu;
    for (float slope : {0.1f, 0.f, -0.25f, 1.7f}) {
        const float rounded = float16_to_float32(float32_to_float16(slope));
        for (size_t pairs = 0; pairs <= 41; pairs++)
            for (bool at_end : {false, true}) {
                Guarded<float> in(pairs, at_end), out(pairs, at_end);
                uint16_t* const x = (uint16_t*)in.data();
                for (size_t i = 0; i < 2 * pairs; i++)
                    x[i] = float32_to_float16(i % 11 == 9    ? -INFINITY
                                              : i % 13 == 12 ? INFINITY
                                                             : ((int)(i * 37 % 83) - 41) / 7.f);
                relu(in.data(), out.data(), pairs, &slope);
                for (size_t i = 0; i < 2 * pairs; i++) {
                    const float v = float16_to_float32(x[i]);
                    const uint16_t want =
                        v < 0 ? float32_to_float16(slope == 0.f ? 0.f : v * rounded) : x[i];
                    ASSERT_EQ(((uint16_t*)out.data())[i], want)
                        << v << " slope " << slope << " at " << i << " of " << 2 * pairs;
                }
                relu(in.data(), in.data(), pairs, &slope);
                ASSERT_EQ(memcmp(in.data(), out.data(), pairs * sizeof(float)), 0);
            }
    }
}

TEST(KernelSet, ordered_and_complete) {
    const IsaList isas = available_isas();
    ASSERT_GT(isas.count, 0);
    EXPECT_EQ(*isas.begin(), Isa::scalar);
    for (Isa isa : isas) {
        EXPECT_EQ(kernel_set(isa).isa, isa);
        EXPECT_GT(kernel_set(isa).lanes, 0);
    }
    EXPECT_EQ(host_kernel_set().isa, *(isas.end() - 1));
}

}  // namespace
