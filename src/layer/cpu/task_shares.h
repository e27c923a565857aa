// Tasks for all threads of a layer.
#ifndef QUOLL_LAYER_CPU_TASK_SHARES_H
#define QUOLL_LAYER_CPU_TASK_SHARES_H

#include <stdint.h>

#include <algorithm>
#include <atomic>

#include "cpu.h"

namespace quoll {

// Each thread takes its own share of the tasks in order, then what others have left: neighbouring
// tasks, which read the same data, stay together, and a thread that others hold up delays none.
class TaskShares {
public:
    enum { kMost = 256 };
    // Shares for threads 0 to shares - 1.
    TaskShares(int64_t tasks, int64_t shares)
        : count_((int)std::min<int64_t>(std::min(tasks, shares), kMost)) {
        for (int i = 0; i < count_; i++) {
            shares_[i].next.store(tasks * i / count_, std::memory_order_relaxed);
            shares_[i].end = tasks * (i + 1) / count_;
        }
    }
    // run(task) for the share of this thread, then for what is left of others. A thread without a
    // share returns at once, so that memory for each share is memory for each thread.
    template <class Run>
    void work(int thread, const Run& run) {
        if (thread >= count_) return;
        for (int i = 0; i < count_; i++) {
            Share& share = shares_[(thread + i) % count_];
            if (i > 0 && share.next.load(std::memory_order_relaxed) >= share.end) continue;
            for (int64_t t; (t = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;)
                run(t);
        }
    }

private:
    struct alignas(64) Share {  // a cache line each
        std::atomic<int64_t> next;
        int64_t end;
    };
    const int count_;
    Share shares_[kMost];
};

// run(task, thread) for all tasks, by up to `threads` threads with numbers below
// min(tasks, threads). The runtime ends threads that a parallel region has no use for, and starting
// them again for the next one costs more than most layers: all regions ask for `threads`.
template <class Run>
void run_tasks(int64_t tasks, int threads, const Run& run) {
    if (threads <= 1 || tasks <= 1) {
        for (int64_t t = 0; t < tasks; t++) run(t, 0);
        return;
    }
    TaskShares shares(tasks, threads);
#pragma omp parallel num_threads(threads)
    {
        const int thread = get_omp_thread_num();
        shares.work(thread, [&](int64_t t) { run(t, thread); });
    }
}

}  // namespace quoll

#endif
