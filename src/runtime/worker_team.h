// Who works beside the thread that begins a region: workers of the library (worker_team.cpp), or,
// with the CMake option QUOLL_USE_OPENMP, OpenMP's (worker_team_openmp.cpp).
#ifndef QUOLL_RUNTIME_WORKER_TEAM_H
#define QUOLL_RUNTIME_WORKER_TEAM_H

#include "runtime/thread_pool.h"

namespace quoll {

// Of a thread; see thread_pool.h.
struct RegionState {
    int thread = 0, threads = 0, limit = 0;
    bool dynamic = true;
};
extern thread_local RegionState region_state;

// Runs a region without other threads.
void run_alone(int64_t tasks, RegionBody body, const void* context);
// Runs a region of at least two tasks and threads, outside other regions.
void run_in_team(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context);
// The same of at least two teams of at least two threads.
void run_in_teams(int64_t tasks, int teams, int each, RegionBody body, const void* context);
int bind_team(const CpuSet& set);

}  // namespace quoll

#endif
