// Every kernel of the recurrent family on every ISA against the definition in double.
#include <gtest/gtest.h>
#include <math.h>

#include <random>
#include <string>
#include <vector>

#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/recurrent/recurrent.h"

using namespace quoll;

namespace {

double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// One value of the new state from the gates' sums (and the cell, in place).
double rnn_case(const double* x, const double* h, double, double*) { return tanh(x[0] + h[0]); }
double lstm_case(const double* x, const double* h, double, double* cell) {
    *cell = sigmoid(x[1] + h[1]) * *cell + sigmoid(x[0] + h[0]) * tanh(x[3] + h[3]);
    return sigmoid(x[2] + h[2]) * tanh(*cell);
}
double gru_case(const double* x, const double* h, double before, double*) {
    const double u = sigmoid(x[1] + h[1]);
    return (1 - u) * tanh(x[2] + sigmoid(x[0] + h[0]) * h[2]) + u * before;
}

double onnx_lstm_case(const double* x, const double* h, double, double* cell) {
    *cell = sigmoid(x[2] + h[2]) * *cell + sigmoid(x[0] + h[0]) * tanh(x[3] + h[3]);
    return sigmoid(x[1] + h[1]) * tanh(*cell);
}
double onnx_gru_case(const double* x, const double* h, double before, double*) {
    const double z = sigmoid(x[0] + h[0]);
    return (1 - z) * tanh(x[2] + sigmoid(x[1] + h[1]) * h[2]) + z * before;
}
double onnx_gru_reset_case(const double* x, const double* h, double before, double*) {
    return sigmoid(x[1] + h[1]) * before;
}
double onnx_gru_last_case(const double* x, const double* h, double before, double* cell) {
    const double z = sigmoid(x[0] + h[0]);
    return (1 - z) * tanh(x[2] + *cell) + z * before;
}

struct Entry {
    const char* name;
    RecurrentKernel RecurrentKernels::*kernel;
    size_t gates;
    double (*expected)(const double* x, const double* h, double before, double* cell);
};
const Entry kEntries[] = {
#define QUOLL_RECURRENT(name, functor, gates) {#name, &RecurrentKernels::name, gates, name##_case},
#include "layer/cpu/recurrent/kernels.inc"
#undef QUOLL_RECURRENT
};

// epsilon: of values of 1.
void check(const Entry& entry, RecurrentKernel kernel, size_t n, float range, double epsilon) {
    SCOPED_TRACE(std::string(entry.name) + " n " + std::to_string(n));
    std::mt19937 rng((unsigned)n);
    std::uniform_real_distribution<float> uniform(-range, range);
    const bool at_end = n % 2;
    Guarded<float> x(n * entry.gates, at_end), h(n * entry.gates, at_end), hidden(n, at_end),
        cell(n, at_end);
    for (Guarded<float>* values : {&x, &h, &hidden, &cell})
        for (float& v : *values) v = uniform(rng);
    const std::vector<float> before(hidden.begin(), hidden.end()), cells(cell.begin(), cell.end());
    kernel(x.data(), h.data(), n, hidden.data(), cell.data());
    for (size_t i = 0; i < n; i++) {
        double gx[4], gh[4], c = cells[i];
        for (size_t g = 0; g < entry.gates; g++) gx[g] = x[g * n + i], gh[g] = h[g * n + i];
        const double want = entry.expected(gx, gh, before[i], &c);
        // Sums of two values of this range, then functions with slopes of at most 1.
        const double tolerance = epsilon * (2 + 2 * range);
        ASSERT_NEAR(hidden[i], want, tolerance) << "at " << i;
        ASSERT_NEAR(cell[i], c, tolerance) << "cell at " << i;
    }
}

TEST(Recurrent, lengths) {
    for (Isa isa : available_isas()) {
        SCOPED_TRACE(isa_name(isa));
        for (const Entry& entry : kEntries) {
            const RecurrentKernel kernel = kernel_set(isa).recurrent->*entry.kernel;
            for (size_t n = 0; n < 70; n++) check(entry, kernel, n, n % 3 ? 1.f : 20.f, 2e-7);
        }
    }
}

// Within an eighth of what rounding to bf16 costs.
TEST(Recurrent, rounded) {
    for (Isa isa : available_isas()) {
        const RecurrentKernels* rounded = kernel_set(isa).recurrent->rounded;
        for (size_t n = 0; n < 70 && rounded; n++)
            for (const Entry& entry : kEntries)
                check(entry, rounded->*entry.kernel, n, n % 3 ? 1.f : 20.f, 0x1p-12);
    }
}

TEST(Recurrent, nan_stays) {
    for (Isa isa : available_isas()) {
        for (const Entry& entry : kEntries) {
            std::vector<float> x(entry.gates * 3, 0.5f), h(entry.gates * 3, 0.25f), hidden(3, 1.f),
                cell(3, 1.f);
            for (size_t g = 0; g < entry.gates; g++) x[g * 3 + 1] = NAN;
            (kernel_set(isa).recurrent->*entry.kernel)(x.data(), h.data(), 3, hidden.data(),
                                                       cell.data());
            EXPECT_TRUE(isnan(hidden[1])) << entry.name << " " << isa_name(isa);
            EXPECT_FALSE(isnan(hidden[0]) || isnan(hidden[2]));
        }
    }
}

}  // namespace
