#include "fit_costs.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <algorithm>
#include <chrono>

namespace quoll {

namespace {

// A constant that can be found from bench_conv's candidates. Margins are not among them: they
// affect the choice, not the cost.
struct Constant {
    const char* name;
    double CostTable::*value;
};
const Constant kConstants[] = {
    {"memory_bytes", &CostTable::memory_bytes},
    {"direct_overhead", &CostTable::direct_overhead},
    {"winograd_in", &CostTable::winograd_in},
    {"winograd_out", &CostTable::winograd_out},
    {"winograd_wait", &CostTable::winograd_wait},
    {"split6_step", &CostTable::split6_step},
    {"split3_step", &CostTable::split3_step},
    {"split1_step", &CostTable::split1_step},
    {"split_value", &CostTable::split_value},
    {"split_finish", &CostTable::split_finish},
    {"split_row", &CostTable::split_row},
    {"split_row_values", &CostTable::split_row_values},
    {"sliced_step", &CostTable::sliced_step},
    {"sliced_value", &CostTable::sliced_value},
    {"sliced_value_pointwise", &CostTable::sliced_value_pointwise},
    {"sliced_value_window", &CostTable::sliced_value_window},
    {"sliced_finish", &CostTable::sliced_finish},
    {"sliced_row", &CostTable::sliced_row},
};

// The mean of the squared logarithms of expected over measured time: 0.01 is some 10 % off.
double error_of(const std::vector<CostSample>& samples, const CostTable& costs, double ns) {
    double sum = 0;
    for (const CostSample& s : samples) {
        const double log_ratio = log(s.cycles(costs) * ns / s.ns);
        sum += log_ratio * log_ratio;
    }
    return sum / (double)samples.size();
}

double percent(double error) { return 100 * (exp(sqrt(error)) - 1); }

std::string line(const char* name, double before, double after) {
    char text[128];
    snprintf(text, sizeof(text), "%-22s %10.4g  was %10.4g\n", name, after, before);
    return text;
}

}  // namespace

double cycle_ns() {
    enum { kAdditions = 1 << 20 };
    double least = INFINITY;
    for (int round = 0; round < 20; round++) {
        const auto begin = std::chrono::steady_clock::now();
        uint64_t x = 1;
        for (int i = 0; i < kAdditions; i += 8) {
            // Each needs the one before; the compiler sees that x changes.
            for (int j = 0; j < 8; j++) {
                x += (uint64_t)i;
                __asm__ volatile("" : "+r"(x));
            }
        }
        const auto end = std::chrono::steady_clock::now();
        least = std::min(least, std::chrono::duration<double, std::nano>(end - begin).count());
    }
    return least / kAdditions;
}

// One constant after another, in smaller and smaller steps, as long as that helps.
std::string fit_costs(const std::vector<CostSample>& samples, double ns) {
    CostTable costs = host_costs();
    const double before = error_of(samples, costs, ns);
    double least = before;
    bool counts[std::size(kConstants)] = {};
    for (double step : {1.5, 1.2, 1.08, 1.03}) {
        for (int pass = 0; pass < 6; pass++) {
            const double begin = least;
            for (size_t i = 0; i < std::size(kConstants); i++) {
                double& value = costs.*kConstants[i].value;
                for (double factor : {step, 1 / step}) {
                    const double kept = value;
                    value *= factor;
                    const double error = error_of(samples, costs, ns);
                    counts[i] |= error != least;
                    if (error < least)
                        least = error;
                    else
                        value = kept;
                }
            }
            if (least > begin * .999) break;
        }
    }
    std::string text = std::string("\ncosts of this machine; core ") +
                       cpu_core_name(host_cpu_core()) + ", a cycle " + std::to_string(ns) + " ns\n";
    for (size_t i = 0; i < std::size(kConstants); i++)
        if (counts[i])
            text += line(kConstants[i].name, host_costs().*kConstants[i].value,
                         costs.*kConstants[i].value);
    char errors[128];
    snprintf(errors, sizeof(errors), "mean error of %zu expectations: %.1f %%, was %.1f %%\n",
             samples.size(), percent(least), percent(before));
    return text + errors;
}

}  // namespace quoll
