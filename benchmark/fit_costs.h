// Fits the constants of src/layer/cpu/common/cost_table.inc to measured convolutions.
#ifndef QUOLL_BENCHMARK_FIT_COSTS_H
#define QUOLL_BENCHMARK_FIT_COSTS_H

#include <functional>
#include <string>
#include <vector>

#include "layer/cpu/common/cost_table.h"

namespace quoll {

// A candidate of a convolution: nanoseconds as measured on one thread, and the cycles that a table
// of costs expects.
struct CostSample {
    double ns;
    std::function<double(const CostTable&)> cycles;
};

// Nanoseconds of a cycle, by a chain of dependent additions.
double cycle_ns();

// The constants of this machine's table that come closest to the samples, beside those that it has
// now: a line for each that the samples tell something of, as cost_table.inc has them, and the mean
// error of all expectations before and after.
std::string fit_costs(const std::vector<CostSample>& samples, double ns);

}  // namespace quoll

#endif
