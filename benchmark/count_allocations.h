// Counts what a program asks of the system's allocator: link count_allocations.cpp into it.
#ifndef QUOLL_BENCHMARK_COUNT_ALLOCATIONS_H
#define QUOLL_BENCHMARK_COUNT_ALLOCATIONS_H

#include <stddef.h>

namespace quoll {

// Calls so far, in all threads, of operator new and of posix_memalign, which fast_malloc stands on.
size_t allocation_count();

}  // namespace quoll

#endif
