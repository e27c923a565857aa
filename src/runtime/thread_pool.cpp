#include "runtime/thread_pool.h"

#include "quoll/platform.h"
#include "runtime/worker_team.h"

namespace quoll {

thread_local RegionState region_state;

bool Claims::next(int64_t* begin, int64_t* end) {
    for (; turn_ < count_; turn_++) {
        if (turn_ == 1 && none_left_ && none_left_->load(std::memory_order_relaxed)) return false;
        Share& share = shares_[(thread_ + turn_) % count_];
        if (turn_ > 0 && share.next.load(std::memory_order_relaxed) >= share.end) continue;
        const int64_t first = share.next.fetch_add(grain_, std::memory_order_relaxed);
        if (first >= share.end) continue;
        *begin = first;
        *end = std::min(first + grain_, share.end);
        return true;
    }
    if (none_left_) none_left_->store(true, std::memory_order_relaxed);
    return false;
}

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

void run_region_in_teams(int64_t tasks, int teams, int each, RegionBody body, const void* context) {
    if (!QUOLL_THREADS) return run_alone(tasks, body, context);
    const int limit = region_state.limit > 0 ? region_state.limit : teams * each;
    teams = (int)std::min<int64_t>({teams, limit, tasks});
    each = std::min(each, limit / std::max(teams, 1));
    if (teams > 1 && each > 1 && region_state.threads == 0)
        return run_in_teams(tasks, teams, each, body, context);
    run_region(tasks, teams, 1, body, context);
}

int region_thread() { return region_state.thread; }
int region_threads() { return region_state.threads; }
int get_thread_limit() { return region_state.limit; }
void set_thread_limit(int threads) { region_state.limit = threads; }
bool get_dynamic_threads() { return region_state.dynamic; }
void set_dynamic_threads(bool dynamic) { region_state.dynamic = dynamic; }
int bind_workers(const CpuSet& set) { return QUOLL_THREADS ? bind_team(set) : 0; }

}  // namespace quoll
