// Every kernel of the recurrent family on every ISA against the definition in double.
#include <gtest/gtest.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <random>
#include <string>
#include <vector>

#include "emulated/emulation.h"
#include "guarded.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/recurrent/recurrent.h"
#include "layer/cpu/recurrent/recurrent_units.h"
#include "layer/cpu/registry/kernel_rows.h"

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

// Steps on tile units, as UnitSteps prepares them.
struct UnitCase {
    RecurrentUnitKernel RecurrentUnitKernels::*kernel;
    size_t gates;
    double (*expected)(const double* x, const double* h, double before, double* cell);
};
const UnitCase kUnitCases[] = {{&RecurrentUnitKernels::lstm, 4, lstm_case},
                               {&RecurrentUnitKernels::gru, 3, gru_case},
                               {&RecurrentUnitKernels::rnn, 1, rnn_case}};

float to_bf16_and_back(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, 4);
    return x;
}

template <class T>
T* aligned(std::vector<T>* values) {
    return (T*)(((uintptr_t)values->data() + 63) / 64 * 64);
}

void check_units(const UnitCase& c, const RecurrentUnitKernels& kernels, size_t n, int items) {
    SCOPED_TRACE(std::to_string(c.gates) + " gates, n " + std::to_string(n) + ", items " +
                 std::to_string(items));
    std::mt19937 rng((unsigned)(n + items));
    std::uniform_real_distribution<float> uniform(-1.f, 1.f);
    const auto random = [&](size_t count, float factor) {
        std::vector<float> values(count);
        for (float& v : values) v = factor * uniform(rng);
        return values;
    };
    std::vector<float> weights = random(c.gates * n * n, 2.f / sqrtf((float)n));
    for (float& w : weights) w = to_bf16_and_back(w);
    const std::vector<float> bias = random(n, 1.f), x = random(items * c.gates * n, 1.f);
    std::vector<float> before = random(items * n, 1.f), cells = random(items * n, 1.f);
    const bool precise = items <= kPreciseItems;
    const std::vector<float> old_cells = cells;

    const size_t steps = (n + kCellK - 1) / kCellK, units = cell_group_tiles((int)c.gates);
    const size_t groups = (n + units * kCellColumns - 1) / (units * kCellColumns);
    const size_t of_tile = kCellTileBytes / 2, tiles = units * c.gates;
    std::vector<uint16_t> packed(groups * steps * tiles * of_tile + 32);
    for (size_t g = 0; g < c.gates; g++) {
        for (size_t u = 0; u < n; u++) {
            for (size_t k = 0; k < n; k++) {
                const size_t group = u / (units * kCellColumns);
                const size_t tile = units == 1 ? g : u / kCellColumns % units;
                uint32_t bits;
                memcpy(&bits, &weights[(g * n + u) * n + k], 4);
                aligned(&packed)[((group * steps + k / kCellK) * tiles + tile) * of_tile +
                                 k % 16 * 32 + u % kCellColumns * 2 + k / 16 % 2] = bits >> 16;
            }
        }
    }

    RecurrentUnitStep step = {};
    step.items = items, step.rows = precise ? 2 * items : items;
    step.n = n;
    std::vector<uint16_t> state(steps * step.rows * kCellK + 32);
    step.state = aligned(&state);
    step.weights = aligned(&packed);
    for (size_t g = 0; g < c.gates; g++) step.gate[g] = g * n;
    step.last_bias = bias.data();
    std::vector<float> after(items * n, 9.f);
    const int ended = items > 2 ? 1 : -1;
    const float *xs[kUnitItems], *states[kUnitItems];
    float* ys[kUnitItems];
    for (int i = 0; i < items; i++) {
        xs[i] = i == ended ? nullptr : &x[i * c.gates * n];
        states[i] = &before[i * n], ys[i] = &after[i * n];
    }
    step.x = xs, step.before = states, step.y = ys, step.cell = cells.data();
    // In two parts.
    step.first_group = 0, step.end_group = groups / 2;
    kernels.begin(step.rows);
    if (step.end_group > 0) (kernels.*c.kernel)(step);
    step.first_group = groups / 2, step.end_group = groups;
    (kernels.*c.kernel)(step);
    kernels.end();

    for (int i = 0; i < items; i++) {
        for (size_t u = 0; u < n; u++) {
            if (i == ended) {
                ASSERT_EQ(after[i * n + u], 9.f);
                continue;
            }
            double gx[4], gh[4], cell = old_cells[i * n + u];
            for (size_t g = 0; g < c.gates; g++) {
                gx[g] = x[(i * c.gates + g) * n + u];
                gh[g] = g == 2 && c.gates == 3 ? bias[u] : 0;
                for (size_t k = 0; k < n; k++) {
                    const float h = before[i * n + k];
                    gh[g] +=
                        (double)weights[(g * n + u) * n + k] * (precise ? h : to_bf16_and_back(h));
                }
            }
            const double want = c.expected(gx, gh, before[i * n + u], &cell);
            ASSERT_NEAR(after[i * n + u], want, 0x1p-11) << "item " << i << " unit " << u;
            if (c.gates == 4) {
                ASSERT_NEAR(cells[i * n + u], cell, 0x1p-11);
            }
        }
    }
}

TEST(Recurrent, units) {
    const Emulation emulation;
    int rows = 0;
    for_kernel_rows<RecurrentUnitKernels>(
        KernelSlot::recurrent_units, host_cpu_features(),
        [&](const KernelRow& row, const RecurrentUnitKernels& kernels) {
            SCOPED_TRACE(row.name);
            rows++;
            for (const UnitCase& c : kUnitCases)
                for (size_t n : {16, 32, 48, 64, 80, 128})
                    for (int items : {1, 2, 4, 5, 16}) check_units(c, kernels, n, items);
        });
    if (!rows) GTEST_SKIP() << "neither AMX nor AVX-512 to emulate it";
}

// An infinite state gives what it gives in IEEE arithmetic, to its item alone.
TEST(Recurrent, units_keep_infinities) {
    const Emulation emulation;
    for_kernel_rows<RecurrentUnitKernels>(
        KernelSlot::recurrent_units, host_cpu_features(),
        [&](const KernelRow& row, const RecurrentUnitKernels& kernels) {
            SCOPED_TRACE(row.name);
            for (float first : {INFINITY, NAN}) {
                const size_t n = 16;
                std::vector<uint16_t> weights(4 * 512 + 32), state(4 * kCellK + 32);
                for (size_t u = 0; u < n; u++) aligned(&weights)[u * 2] = 0x3f80;  // of k = 0
                std::vector<float> x(n), y(2 * n), before(2 * n);
                before[0] = first;
                const float* xs[] = {x.data(), x.data()};
                const float* states[] = {&before[0], &before[n]};
                float* ys[] = {&y[0], &y[n]};
                RecurrentUnitStep step = {};
                step.state = aligned(&state), step.weights = aligned(&weights);
                step.items = 2, step.rows = 4, step.n = n, step.end_group = 1;
                step.x = xs, step.before = states, step.y = ys;
                kernels.begin(step.rows);
                kernels.rnn(step);
                kernels.end();
                for (size_t u = 0; u < n; u++) {
                    if (isnan(first))
                        EXPECT_TRUE(isnan(y[u]));
                    else
                        EXPECT_NEAR(y[u], 1.f, 0x1p-11);
                    EXPECT_EQ(y[n + u], 0.f);
                }
            }
        });
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
