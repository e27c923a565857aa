// bench_peak: the speed of a core's multipliers, from registers alone.
//
//   bench_peak [threads] [units]
//
// units: a regular expression on their names. For each unit that the processor has: nanoseconds an
// instruction, and operations a second of all threads together. The line `tdpbf16ps` tells the
// state of the tile units: 16 cycles, 6.5 to 7.3 ns at 2.2 to 2.5 GHz, when they run at full speed;
// beyond 8 ns something holds them back, and figures measured meanwhile stand for nothing.
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <regex>
#include <thread>
#include <vector>

#include "peak.h"

using namespace quoll;

namespace {

void print_unit(const PeakUnit& unit, int threads) {
    std::vector<double> ns(threads);
    std::vector<std::thread> workers;
    for (int i = 1; i < threads; i++) workers.emplace_back([&, i] { ns[i] = peak_time_ns(unit); });
    ns[0] = peak_time_ns(unit);
    for (std::thread& worker : workers) worker.join();
    double speed = 0, slowest = 0;
    for (double t : ns) speed += unit.operations / t, slowest = std::max(slowest, t);
    printf("%-16s %8.3f ns %10.1f Gop/s%s\n", unit.name, slowest, speed,
           unit.feature == CpuFeature::amx_bf16 ? slowest < 8 ? "  (full speed)" : "  (held back)"
                                                : "");
}

}  // namespace

int main(int argc, char** argv) {
    char* end = nullptr;
    const long threads = argc > 1 ? strtol(argv[1], &end, 10) : 1;
    if (argc > 3 || threads < 1 || threads > 1024 || (end && *end)) {
        fprintf(stderr, "usage: bench_peak [threads, 1 to 1024] [units]\n");
        return 2;
    }
    try {
        const std::regex wanted(argc > 2 ? argv[2] : "");
        printf("threads = %ld; time of the slowest, speed of all\n", threads);
        for (const PeakUnit& unit : peak_units())
            if (std::regex_search(unit.name, wanted)) print_unit(unit, (int)threads);
    } catch (const std::regex_error& e) {
        fprintf(stderr, "bench_peak: '%s': %s\n", argv[2], e.what());
        return 2;
    }
    return 0;
}
