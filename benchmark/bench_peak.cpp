// bench_peak: the speed of a core's multipliers, from registers alone.
//
//   bench_peak [threads] [units]
//
// units: a regular expression on their names. For each unit that the processor has: nanoseconds an
// instruction, and operations per second of all threads together. The line `tdpbf16ps` tells the
// state of the tile units: 16 cycles, 6.5 to 7.3 ns at 2.2 to 2.5 GHz, when they run at full speed;
// beyond 8 ns they are throttled, and figures measured meanwhile mean nothing. The line `region`,
// of two threads and more, is a parallel region of the library in which each thread works for 1 us.
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <regex>
#include <thread>
#include <vector>

#include "common/cli.h"
#include "peak.h"
#include "runtime/thread_pool.h"

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
           unit.feature == CpuFeature::amx_bf16 ? slowest < 8 ? "  (full speed)" : "  (throttled)"
                                                : "");
}

// Microseconds of a region: the least mean of ten turns.
double region_us(int threads) {
    using Clock = std::chrono::steady_clock;
    constexpr int kTurns = 10, kRegions = 2000;
    const auto work = [](int64_t, int) {
        const auto end = Clock::now() + std::chrono::microseconds(1);
        while (Clock::now() < end) {
        }
    };
    double least = 1e9;
    for (int turn = 0; turn < kTurns; turn++) {
        const auto begin = Clock::now();
        for (int i = 0; i < kRegions; i++) run_tasks(threads, threads, work);
        const std::chrono::duration<double, std::micro> taken = Clock::now() - begin;
        least = std::min(least, taken.count() / kRegions);
    }
    return least;
}

}  // namespace

int main(int argc, char** argv) {
    int threads = 1;
    std::string units;
    CommandLine line("Measures the speed of the processor's units.", "bench_peak");
    line.option("THREADS", threads, "default 1").between(1, 1024);
    line.option("UNITS", units, "regular expression on their names; default: all");
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    try {
        const std::regex wanted(units);
        printf("threads = %d; time of the slowest, speed of all\n", threads);
        for (const PeakUnit& unit : peak_units())
            if (std::regex_search(unit.name, wanted)) print_unit(unit, threads);
        if (threads > 1 && std::regex_search("region", wanted))
            printf("%-16s %8.2f us\n", "region", region_us(threads));
    } catch (const std::regex_error& e) {
        fprintf(stderr, "bench_peak: '%s': %s\n", units.c_str(), e.what());
        return 2;
    }
    return 0;
}
