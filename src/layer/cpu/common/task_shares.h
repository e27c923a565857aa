// Tasks for all threads of a layer.
#ifndef QUOLL_LAYER_CPU_TASK_SHARES_H
#define QUOLL_LAYER_CPU_TASK_SHARES_H

#include <stdint.h>

#include <algorithm>
#include <atomic>

#include "layer/common/scratch.h"

namespace quoll {

// Each thread takes its own share of the tasks in order, then what others have left: neighbouring
// tasks, which read the same data, stay together, and a thread that others hold up delays none.
class TaskShares {
public:
    // Shares for threads 0 to shares - 1.
    TaskShares(int64_t tasks, int64_t shares) : count_((int)std::min(tasks, shares)) {
        shares_->resize((size_t)count_);
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
        Share() {}
        Share(const Share&) {}  // for a list that grows; nothing is in it yet
    };
    const int count_;
    Scratch<Share> shares_;  // many threads' would be too large for small stacks
};

// task(run, i, thread) for all 0 <= i < tasks, by up to `threads` threads, whose numbers are below
// min(tasks, threads).
void run_tasks(int64_t tasks, int threads, void (*task)(const void* run, int64_t i, int thread),
               const void* run);
// The same for a function object: run(i, thread).
template <class Run>
void run_tasks(int64_t tasks, int threads, const Run& run) {
    run_tasks(
        tasks, threads, [](const void* f, int64_t i, int thread) { (*(const Run*)f)(i, thread); },
        &run);
}

}  // namespace quoll

#endif
