// Programs that are linked with failing_heap.cpp allocate through it: posix_memalign, which
// fast_malloc takes large and aligned blocks from, and operator new.
#ifndef QUOLL_TESTS_FAILING_HEAP_H
#define QUOLL_TESTS_FAILING_HEAP_H

#include <stddef.h>

namespace quoll {

// A larger block of aligned memory is refused.
extern size_t heap_limit;

// While it lives, allocation number `at` of the whole program fails; -1: none.
class FailingHeap {
public:
    explicit FailingHeap(long at);
    ~FailingHeap() { mend(); }
    // Whether it has.
    bool failed() const;
    void mend() const;
};

// Allocations of the program so far.
long count_allocations();

}  // namespace quoll

#endif
