// The error of the elementary functions of simd/math.h that layers lean on, in units in the last
// place against double, over all floats: every 4099th bit pattern, so that all magnitudes count,
// and all signs. The bounds are those that simd/math.h states.
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <vector>

#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/unary/unary.h"
#include "ulp.h"

using namespace quoll;

namespace {

struct Function {
    const char* name;
    UnaryKernel UnaryKernels::*kernel;
    double (*exact)(double);
    double bound;
};

const Function kFunctions[] = {
    {"exp", &UnaryKernels::exp, [](double x) { return exp(x); }, 1},
    {"expm1", &UnaryKernels::expm1, [](double x) { return expm1(x); }, 2},
    {"log", &UnaryKernels::log, [](double x) { return log(x); }, 1},
    {"log1p", &UnaryKernels::log1p, [](double x) { return log1p(x); }, 2},
    {"log10", &UnaryKernels::log10, [](double x) { return log10(x); }, 2},
    {"tanh", &UnaryKernels::tanh, [](double x) { return tanh(x); }, 2},
    {"erf", &UnaryKernels::erf, [](double x) { return erf(x); }, 2},
    {"sin", &UnaryKernels::sin, [](double x) { return sin(x); }, 2},
    {"cos", &UnaryKernels::cos, [](double x) { return cos(x); }, 2},
    {"sigmoid", &UnaryKernels::sigmoid, [](double x) { return 1 / (1 + exp(-x)); }, 2.1},
};

void PrintTo(const Function& f, std::ostream* os) { *os << f.name; }

class MathError : public ::testing::TestWithParam<Function> {};

TEST_P(MathError, within_the_stated_bound) {
    std::vector<float> x;
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 4099) {
        const uint32_t word = (uint32_t)bits;
        float value;
        memcpy(&value, &word, sizeof(value));
        if (isfinite(value)) x.push_back(value);
    }
    std::vector<double> exact(x.size());
    for (size_t i = 0; i < x.size(); i++) exact[i] = GetParam().exact(x[i]);
    std::vector<float> y(x.size());
    for (Isa isa : available_isas()) {
        (kernel_set(isa).unary->*GetParam().kernel)(x.data(), y.data(), x.size(), nullptr);
        size_t worst = 0;
        double most = 0;
        for (size_t i = 0; i < x.size(); i++) {
            const double error = ulp_error(y[i], exact[i]);
            if (error > most) most = error, worst = i;
        }
        printf("%-8s %-7s %.3f ulp at %.9g\n", GetParam().name, isa_name(isa), most, x[worst]);
        EXPECT_LE(most, GetParam().bound)
            << GetParam().name << "(" << x[worst] << ") = " << y[worst] << ", exact "
            << exact[worst] << ", " << isa_name(isa);
    }
}

INSTANTIATE_TEST_SUITE_P(Simd, MathError, ::testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
