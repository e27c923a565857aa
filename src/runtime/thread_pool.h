// Threads that share the tasks of a layer. Each thread that starts regions has workers of its own,
// which sleep between inferences.
#ifndef QUOLL_RUNTIME_THREAD_POOL_H
#define QUOLL_RUNTIME_THREAD_POOL_H

#include <stdint.h>

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "quoll/platform.h"

namespace quoll {

class CpuSet;

// The tasks that one thread of a region takes: first its own share, in order, then what others have
// left. So neighbouring tasks, which read the same data, stay together, and a thread that is held
// up, or has not even started, delays nobody.
class Claims {
public:
    struct alignas(64) Share {  // a cache line each
        std::atomic<int64_t> next;
        int64_t end;
    };
    // For thread `thread` of `count`, which has the share of that index. none_left: set when all
    // shares are taken, so that not every thread has to look at each; or null.
    Claims(Share* shares, int count, int thread, int64_t grain,
           std::atomic<bool>* none_left = nullptr)
        : shares_(shares), count_(count), thread_(thread), grain_(grain), none_left_(none_left) {}
    // The thread's number; 0 is the thread that began the region.
    int thread() const { return thread_; }
    // The next tasks, [*begin, *end); false when none are left.
    bool next(int64_t* begin, int64_t* end);

private:
    Share* const shares_;
    const int count_, thread_;
    const int64_t grain_;
    std::atomic<bool>* const none_left_;
    int turn_ = 0;
};

// Calls body(context, claims) in the calling thread, and in up to min(threads, tasks) - 1 workers
// that come in time, whose numbers are below min(threads, tasks). Returns when all tasks are done,
// and throws what a body has thrown. Regions within regions have one thread. `grain` tasks are
// taken at a time.
typedef void (*RegionBody)(const void* context, Claims& claims);
void run_region(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context);

// The same for body(claims), for threads that have something to prepare.
template <class Body>
void run_region(int64_t tasks, int threads, const Body& body) {
    run_region(
        tasks, threads, 1, [](const void* f, Claims& claims) { (*(const Body*)f)(claims); }, &body);
}

// Calls run(i, thread) for all 0 <= i < tasks. Tasks are taken one at a time, so each should be
// long enough.
template <class Run>
void run_tasks(int64_t tasks, int threads, const Run& run) {
    if constexpr (!QUOLL_THREADS) {
        for (int64_t i = 0; i < tasks; i++) run(i, 0);
        return;
    }
    run_region(tasks, threads, [&](Claims& claims) {
        for (int64_t i, end; claims.next(&i, &end);)
            for (; i < end; i++) run(i, claims.thread());
    });
}

// Calls run(i), or run(i, thread).
template <class Run>
void call_task(const Run& run, int64_t i, int thread) {
    if constexpr (std::is_invocable<const Run&, int64_t, int>::value)
        run(i, thread);
    else
        run(i);
}

// Calls run(i), or run(i, thread), for all 0 <= i < count, taking a few at a time.
template <class Run>
void parallel_for(int64_t count, int threads, const Run& run) {
    if constexpr (!QUOLL_THREADS) {
        for (int64_t i = 0; i < count; i++) call_task(run, i, 0);
        return;
    }
    const RegionBody body = [](const void* f, Claims& claims) {
        for (int64_t i, end; claims.next(&i, &end);)
            for (; i < end; i++) call_task(*(const Run*)f, i, claims.thread());
    };
    const int64_t each = threads > 1 ? count / ((int64_t)threads * 8) : count;
    run_region(count, threads, std::max<int64_t>(each, 1), body, &run);
}

// Calls body(context, claims) in up to `teams` threads at a time, whose numbers are below `teams`.
// Each of them has up to `each` threads for the regions that its body begins.
void run_region_in_teams(int64_t tasks, int teams, int each, RegionBody body, const void* context);

// Calls run(i, team) for all 0 <= i < tasks, in such teams.
template <class Run>
void run_tasks_in_teams(int64_t tasks, int teams, int each, const Run& run) {
    if constexpr (!QUOLL_THREADS) return run_tasks(tasks, 1, run);
    const RegionBody body = [](const void* f, Claims& claims) {
        for (int64_t i, end; claims.next(&i, &end);)
            for (; i < end; i++) (*(const Run*)f)(i, claims.thread());
    };
    run_region_in_teams(tasks, teams, each, body, &run);
}

// The calling thread's number in the region that it works for, and the number of threads of that
// region; 0 and 0 outside regions.
int region_thread();
int region_threads();

// The most threads that regions of the calling thread may have, 0 for any number; and whether
// threads that are often late, as on processors with other work, are left out for a while
// (initially they are).
int get_thread_limit();
void set_thread_limit(int threads);
bool get_dynamic_threads();
void set_dynamic_threads(bool dynamic);
// Binds the workers of the calling thread; returns 0 or the system's error number.
int bind_workers(const CpuSet& set);
// Sets the milliseconds that idle workers spin at most before they sleep; they never spin for more
// than a fraction of one.
void set_spin_limit(int milliseconds);

}  // namespace quoll

#endif
