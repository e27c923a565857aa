// Threads that share the tasks of a layer. Each thread that starts regions has workers of its own,
// which sleep between inferences.
#ifndef QUOLL_RUNTIME_THREAD_POOL_H
#define QUOLL_RUNTIME_THREAD_POOL_H

#include <stdint.h>

#include <algorithm>
#include <atomic>
#include <type_traits>

namespace quoll {

class CpuSet;

// What one thread of a region takes of its tasks: its own share of them in order, then what others
// have left. Neighbouring tasks, which read the same data, stay together, and a thread that is held
// up, or has not even started, delays none.
class Claims {
public:
    struct alignas(64) Share {  // a cache line each
        std::atomic<int64_t> next;
        int64_t end;
    };
    // Of thread `thread`, one of `count`, which has the share of that index. none_left: set when
    // all shares are taken, so that not every thread looks at each; or null.
    Claims(Share* shares, int count, int thread, int64_t grain,
           std::atomic<bool>* none_left = nullptr)
        : shares_(shares), count_(count), thread_(thread), grain_(grain), none_left_(none_left) {}
    // Its number: 0 is the thread that began the region.
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

// body(context, claims) in the calling thread, and in up to min(threads, tasks) - 1 workers that
// come in time, whose numbers are below min(threads, tasks). Returns when all tasks are done; what
// a body throws is thrown here then. Regions within regions have one thread.
// `grain` tasks are taken at a time.
typedef void (*RegionBody)(const void* context, Claims& claims);
void run_region(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context);

// The same for body(claims), as of threads that have something to prepare.
template <class Body>
void run_region(int64_t tasks, int threads, const Body& body) {
    run_region(
        tasks, threads, 1, [](const void* f, Claims& claims) { (*(const Body*)f)(claims); }, &body);
}

// run(i, thread) for all 0 <= i < tasks, each long enough to be taken by itself.
template <class Run>
void run_tasks(int64_t tasks, int threads, const Run& run) {
    run_region(tasks, threads, [&](Claims& claims) {
        for (int64_t i, end; claims.next(&i, &end);)
            for (; i < end; i++) run(i, claims.thread());
    });
}

// run(i), or run(i, thread), for all 0 <= i < count, a few at a time.
template <class Run>
void parallel_for(int64_t count, int threads, const Run& run) {
    const RegionBody body = [](const void* f, Claims& claims) {
        for (int64_t i, end; claims.next(&i, &end);)
            for (; i < end; i++) {
                if constexpr (std::is_invocable<const Run&, int64_t, int>::value)
                    (*(const Run*)f)(i, claims.thread());
                else
                    (*(const Run*)f)(i);
            }
    };
    const int64_t each = threads > 1 ? count / ((int64_t)threads * 8) : count;
    run_region(count, threads, std::max<int64_t>(each, 1), body, &run);
}

// body(context, claims) in up to `teams` threads at a time, whose numbers are below that, each of
// which has up to `each` threads for the regions that body begins.
void run_region_in_teams(int64_t tasks, int teams, int each, RegionBody body, const void* context);

// run(i, team) for all 0 <= i < tasks, as of these.
template <class Run>
void run_tasks_in_teams(int64_t tasks, int teams, int each, const Run& run) {
    const RegionBody body = [](const void* f, Claims& claims) {
        for (int64_t i, end; claims.next(&i, &end);)
            for (; i < end; i++) (*(const Run*)f)(i, claims.thread());
    };
    run_region_in_teams(tasks, teams, each, body, &run);
}

// Of the calling thread: its number in the region that it works for and the threads of that; 0 and
// 0 outside.
int region_thread();
int region_threads();

// The most threads that regions of the calling thread have, 0 for any number; and whether such as
// are often late, as on processors with other work, are left out for a while (they are at first).
int get_thread_limit();
void set_thread_limit(int threads);
bool get_dynamic_threads();
void set_dynamic_threads(bool dynamic);
// Binds the workers of the calling thread; returns 0 or the system's error number.
int bind_workers(const CpuSet& set);
// The milliseconds that idle workers spin at most before they sleep; more than a fraction of one
// they never do.
void set_spin_limit(int milliseconds);

}  // namespace quoll

#endif
