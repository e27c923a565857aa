// The multipliers of this processor, each with a loop that keeps it busy from registers alone.
#ifndef QUOLL_BENCHMARK_PEAK_H
#define QUOLL_BENCHMARK_PEAK_H

#include <stdint.h>

#include <vector>

#include "runtime/cpu_features.h"

namespace quoll {

struct PeakUnit {
    const char* name;  // the instruction, and the vectors that it takes
    CpuFeature feature;
    void (*run)(int64_t count);
    int operations;  // of one instruction, a multiplication and an addition being two
    int64_t count;   // instructions of one sample, some 50 us
};

// Those that this processor has and QUOLL_CPU_MASK leaves; none but on x86-64.
std::vector<PeakUnit> peak_units();
// Nanoseconds an instruction on the calling thread: the median of 50 ms after a warm-up of 2 ms.
double peak_time_ns(const PeakUnit& unit);

}  // namespace quoll

#endif
