// Tasks for all threads of a layer.
#ifndef QUOLL_LAYER_CPU_TASK_PARTITIONS_H
#define QUOLL_LAYER_CPU_TASK_PARTITIONS_H

#include <stdint.h>

#include <algorithm>
#include <atomic>

#include "layer/common/scratch.h"

namespace quoll {

// Each thread takes its own partition of the tasks in order, then what others have left:
// neighbouring tasks, which read the same data, stay together, and a thread that others hold up
// delays none.
class TaskPartitions {
public:
    // Partitions for threads 0 to partitions - 1.
    TaskPartitions(int64_t tasks, int64_t partitions) : count_((int)std::min(tasks, partitions)) {
        partitions_->resize((size_t)count_);
        for (int i = 0; i < count_; i++) {
            partitions_[i].next.store(tasks * i / count_, std::memory_order_relaxed);
            partitions_[i].end = tasks * (i + 1) / count_;
        }
    }
    // run(task) for the partition of this thread, then for what is left of others. A thread without
    // a partition returns at once, so that memory for each partition is memory for each thread.
    template <class Run>
    void work(int thread, const Run& run) {
        if (thread >= count_) return;
        for (int i = 0; i < count_; i++) {
            Partition& partition = partitions_[(thread + i) % count_];
            if (i > 0 && partition.next.load(std::memory_order_relaxed) >= partition.end) continue;
            for (int64_t t;
                 (t = partition.next.fetch_add(1, std::memory_order_relaxed)) < partition.end;)
                run(t);
        }
    }

private:
    struct alignas(64) Partition {  // a cache line each
        std::atomic<int64_t> next;
        int64_t end;
        Partition() {}
        Partition(const Partition&) {}  // for a list that grows; nothing is in it yet
    };
    const int count_;
    Scratch<Partition> partitions_;  // many threads' would be too large for small stacks
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
