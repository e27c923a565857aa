// Places blobs in one block of memory, so that blobs that live at different times share it.
#ifndef QUOLL_PLAN_MEMORY_PLAN_H
#define QUOLL_PLAN_MEMORY_PLAN_H

#include <stddef.h>

#include <vector>

namespace quoll {

// A blob that is alive from step `first` to step `last`, both included.
struct MemoryRequest {
    size_t bytes;
    int first, last;
};

struct MemoryPlan {
    std::vector<size_t> offsets;  // of each request; multiples of the alignment
    size_t bytes = 0;             // of the block
    size_t sum = 0;               // of all requests, each by itself
    // The peak of live bytes during one step: no plan needs less.
    size_t most_alive = 0;
};

// Interval colouring, greedy by size (Pisarchyk and Lee, "Efficient memory management for deep
// neural net inference", 2020): the requests, largest first, each take the smallest gap that fits
// among those that were placed before and live at the same time. alignment: a power of two.
MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests, size_t alignment);

}  // namespace quoll

#endif
