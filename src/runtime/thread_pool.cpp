#include "runtime/thread_pool.h"

#include "quoll/platform.h"
#include "runtime/worker_team.h"

namespace quoll {

thread_local RegionState region_state;

void run_alone(int64_t tasks, RegionBody body, const void* context) {
    Claims::Share all;
    all.next.store(0, std::memory_order_relaxed);
    all.end = tasks;
    Claims claims(&all, 1, 0, tasks);
    body(context, claims);
}

void run_region(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context) {
    if (tasks <= 0) return;
    if (region_state.limit > 0) threads = std::min(threads, region_state.limit);
    if (QUOLL_THREADS && threads > 1 && tasks > 1 && region_state.threads == 0)
        return run_in_team(tasks, threads, grain, body, context);
    run_alone(tasks, body, context);
}

int region_thread() { return region_state.thread; }
int region_threads() { return region_state.threads; }
int get_thread_limit() { return region_state.limit; }
void set_thread_limit(int threads) { region_state.limit = threads; }
bool get_dynamic_threads() { return region_state.dynamic; }
void set_dynamic_threads(bool dynamic) { region_state.dynamic = dynamic; }
int bind_workers(const CpuSet& set) { return QUOLL_THREADS ? bind_team(set) : 0; }

}  // namespace quoll
