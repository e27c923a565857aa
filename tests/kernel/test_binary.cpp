// Every kernel of the binary family on every ISA against double precision, in all three forms.
#include <gtest/gtest.h>
#include <math.h>

#include <random>

#include "guarded.h"
#include "layer/cpu/binary/binary.h"
#include "layer/cpu/common/kernel_set.h"
#include "ulp.h"

using namespace quoll;

namespace {

struct Case {
    double (*reference)(double a, double b);
    float low, high;  // operands are drawn from here
    double ulp;
    double absolute;  // on top, in units of the larger operand's rounding
};

#define F(expression) [](double a, double b) -> double { return expression; }
Case add_case() { return {F(a + b), -9, 9, 1, 0}; }
Case sub_case() { return {F(a - b), -9, 9, 1, 0}; }
Case mul_case() { return {F(a * b), -9, 9, 1, 0}; }
Case div_case() { return {F(a / b), -9, 9, 1, 0}; }
Case max_case() { return {F(a > b || isnan(a) ? a : b), -9, 9, 0, 0}; }
Case min_case() { return {F(a < b || isnan(a) ? a : b), -9, 9, 0, 0}; }
Case pow_case() { return {F(pow(a, b)), 0, 9, 3, 0}; }
Case atan2_case() { return {F(atan2(a, b)), -9, 9, 6, 0}; }
Case logaddexp_case() {
    return {F(a == b ? a + log(2.0) : fmax(a, b) + log1p(exp(-fabs(a - b)))), -9, 9, 2, 2};
}
Case floor_divide_case() { return {F(floor((double)(float)(a / b))), -9, 9, 0, 0}; }
Case fmod_case() { return {F(fmod(a, b)), -9, 9, 0, 0}; }
Case remainder_case() { return {F(remainder(a, b)), -9, 9, 0, 0}; }
#undef F

struct Entry {
    const char* name;
    BinaryVariants BinaryKernels::*forms;
    Case (*make_case)();
};
const Entry kEntries[] = {
#define QUOLL_BINARY(name, functor) {#name, &BinaryKernels::name, name##_case},
#include "layer/cpu/binary/kernels.inc"
#undef QUOLL_BINARY
};

void PrintTo(const Entry& e, std::ostream* os) { *os << e.name; }

class Binary : public ::testing::TestWithParam<Entry> {
protected:
    void check(float a, float b, float got, Isa isa) const {
        const double exact = test_case.reference(a, b);
        double room = test_case.absolute * 0x1p-23 * fmax(fabs(a), fabs(b)) / ulp_of(exact);
        if (!isfinite(room)) room = 0;
        ASSERT_LE(ulp_error(got, exact), test_case.ulp + room)
            << GetParam().name << "(" << a << ", " << b << ") = " << got << ", exact " << exact
            << ", " << isa_name(isa);
    }
    Case test_case = GetParam().make_case();
};

// Lengths around every vector width, at the end of a page and unaligned.
TEST_P(Binary, forms_and_lengths) {
    std::mt19937 rng(7);
    std::uniform_real_distribution<float> value(test_case.low, test_case.high);
    for (Isa isa : available_isas()) {
        const BinaryVariants& forms = kernel_set(isa).binary->*GetParam().forms;
        for (size_t n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 100, 1000}) {
            Guarded<float> a(n), b(n), out(n), pattern(kPatternSize);
            for (float& x : a) x = value(rng);
            for (float& x : b) x = value(rng);
            for (float& x : pattern) x = value(rng);
            forms.vectors(a.data(), b.data(), out.data(), n);
            for (size_t i = 0; i < n; i++) check(a[i], b[i], out[i], isa);
            forms.vector_pattern(a.data(), pattern.data(), out.data(), n);
            for (size_t i = 0; i < n; i++) check(a[i], pattern[i % kPatternSize], out[i], isa);
            forms.pattern_vector(pattern.data(), b.data(), out.data(), n);
            for (size_t i = 0; i < n; i++) check(pattern[i % kPatternSize], b[i], out[i], isa);
        }
    }
}

TEST_P(Binary, in_place) {
    std::mt19937 rng(8);
    std::uniform_real_distribution<float> value(test_case.low, test_case.high);
    const size_t n = 77;
    for (Isa isa : available_isas()) {
        const BinaryVariants& forms = kernel_set(isa).binary->*GetParam().forms;
        Guarded<float> a(n), b(n), out(n);
        for (float& x : a) x = value(rng);
        for (float& x : b) x = value(rng);
        std::copy(a.begin(), a.end(), out.begin());
        forms.vectors(out.data(), b.data(), out.data(), n);
        for (size_t i = 0; i < n; i++) check(a[i], b[i], out[i], isa);
        std::copy(b.begin(), b.end(), out.begin());
        forms.pattern_vector(a.data(), out.data(), out.data(), n);
        for (size_t i = 0; i < n; i++) check(a[i % kPatternSize], b[i], out[i], isa);
    }
}

// Every pair of numbers that have rules of their own.
TEST_P(Binary, special_arguments) {
    const float special[] = {NAN,     INFINITY, -INFINITY, 0.f,   -0.f,   1.f,    -1.f, 2.f,  -3.f,
                             FLT_MAX, -FLT_MAX, FLT_MIN,   1e10f, -1e10f, 1e-10f, 0.5f, -2.5f};
    for (Isa isa : available_isas()) {
        const BinaryVariants& forms = kernel_set(isa).binary->*GetParam().forms;
        for (float a : special)
            for (float b : special) {
                float out = 99.f;
                forms.vectors(&a, &b, &out, 1);
                check(a, b, out, isa);
            }
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Binary, ::testing::ValuesIn(kEntries),
                         [](const auto& info) { return std::string(info.param.name); });

#if defined(__x86_64__) || defined(__i386__)
TEST(BinarySums, relu) {
    for (Isa isa : available_isas())
        for (size_t n : {1, 7, 8, 16, 31, 64, 77}) {
            const BinaryKernels& k = *kernel_set(isa).binary;
            Guarded<float> a(n), b(n), out(n);
            for (size_t i = 0; i < n; i++) {
                a[i] = (float)((int)(i * 37 % 101) - 50) * .37f;
                b[i] = (float)((int)(i * 53 % 97) - 48) * .41f;
            }
            if (n > 7) a[3] = NAN, a[4] = -INFINITY, b[5] = INFINITY;
            k.add_relu(a.data(), b.data(), out.data(), n);
            for (size_t i = 0; i < n; i++) {
                const float sum = a[i] + b[i];
                if (isnan(sum))
                    ASSERT_TRUE(isnan(out[i])) << isa_name(isa);
                else
                    ASSERT_EQ(sum < 0.f ? 0.f : sum, out[i]) << isa_name(isa) << " " << i;
            }
        }
}
#endif

}  // namespace
