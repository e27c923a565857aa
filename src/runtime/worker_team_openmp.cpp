// Workers of the OpenMP runtime, for applications that have one anyway and want one set of threads.
#include "runtime/worker_team.h"

#include <errno.h>
#include <omp.h>

#include <exception>
#include <mutex>
#include <vector>

#include "quoll/cpu.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace quoll {
namespace {

// A running region; kept by each thread that begins regions, so that the next one finds its memory.
struct Region {
    std::vector<Claims::Share> shares;
    std::mutex lock;
    std::exception_ptr exception;

    void share(int64_t tasks, int threads);
    void take_part(int thread, int64_t grain, RegionBody body, const void* context);
};

void Region::share(int64_t tasks, int threads) {
    if ((int)shares.size() < threads) shares = std::vector<Claims::Share>((size_t)threads);
    for (int i = 0; i < threads; i++) {
        shares[i].next.store(tasks * i / threads, std::memory_order_relaxed);
        shares[i].end = tasks * (i + 1) / threads;
    }
}

void Region::take_part(int thread, int64_t grain, RegionBody body, const void* context) {
    region_state.thread = thread;
    try {
        Claims claims(shares.data(), region_state.threads, thread, grain);
        body(context, claims);
    } catch (...) {
        std::lock_guard<std::mutex> guard(lock);
        if (!exception) exception = std::current_exception();
    }
    region_state.thread = region_state.threads = 0;
}

Region& own_region() {
    static thread_local Region region;
    return region;
}

}  // namespace

// The runtime may give fewer threads than it is asked for; they then do the shares of the missing
// ones, too.
void run_in_team(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context) {
    Region& region = own_region();
    threads = (int)std::min<int64_t>(threads, tasks);
    region.share(tasks, threads);
    const int denormals = get_flush_denormals();
#pragma omp parallel num_threads(threads)
    {
        if (get_flush_denormals() != denormals) set_flush_denormals(denormals);
        region_state.threads = threads;
        region.take_part(omp_get_thread_num(), grain, body, context);
    }
    if (!region.exception) return;
    const std::exception_ptr thrown = region.exception;
    region.exception = nullptr;
    std::rethrow_exception(thrown);
}

void run_in_teams(int64_t tasks, int teams, int, RegionBody body, const void* context) {
    run_in_team(tasks, teams, 1, body, context);
}

int bind_team(const CpuSet& set) {
    int error = 0;
#if defined(__linux__)
#pragma omp parallel
    if (omp_get_thread_num() != 0 && sched_setaffinity(0, sizeof(set.cpu_set), &set.cpu_set) != 0) {
#pragma omp critical
        error = errno;
    }
#else
    (void)set;
#endif
    return error;
}

// The runtime itself decides how long idle workers spin (OMP_WAIT_POLICY, GOMP_SPINCOUNT).
void set_spin_limit(int) {}

}  // namespace quoll
