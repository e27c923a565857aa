// Counts what a program asks of the system's allocator: link count_allocations.cpp into it.
#ifndef QUOLL_BENCHMARK_COUNT_ALLOCATIONS_H
#define QUOLL_BENCHMARK_COUNT_ALLOCATIONS_H

#include <stddef.h>

namespace quoll {

// Calls so far, in all threads: of posix_memalign, which fast_malloc and so every Mat uses; and of
// operator new, for short lists that layers make while they run.
size_t block_allocations();
size_t small_allocations();

}  // namespace quoll

#endif
