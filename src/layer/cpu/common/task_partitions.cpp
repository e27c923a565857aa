#include "layer/cpu/common/task_partitions.h"

#include "quoll/cpu.h"

namespace quoll {

void run_tasks(int64_t tasks, int threads, void (*task)(const void* run, int64_t i, int thread),
               const void* run) {
    if (threads <= 1 || tasks <= 1) {
        for (int64_t i = 0; i < tasks; i++) task(run, i, 0);
        return;
    }
    TaskPartitions partitions(tasks, threads);
    // The runtime ends threads that a parallel region has no use for, and starting them again for
    // the next one costs more than most layers: all regions ask for `threads`, though fewer may
    // have a partition.
#pragma omp parallel num_threads(threads)
    {
        const int thread = get_omp_thread_num();
        partitions.work(thread, [&](int64_t i) { task(run, i, thread); });
    }
}

}  // namespace quoll
