#include "failing_heap.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <new>

namespace quoll {

size_t heap_limit = SIZE_MAX;

static std::atomic<long> allocations{0}, fails_at{-1};

FailingHeap::FailingHeap(long at) { fails_at = at < 0 ? -1 : allocations + at; }
bool FailingHeap::failed() const { return fails_at >= 0 && allocations > fails_at; }
void FailingHeap::mend() const { fails_at = -1; }
long count_allocations() { return allocations; }

static bool fails_now() { return allocations++ == fails_at; }

}  // namespace quoll

// The program's own definitions come before those of the C and C++ libraries.
extern "C" int posix_memalign(void** ptr, size_t alignment, size_t size) noexcept {
    if (size > quoll::heap_limit || size > SIZE_MAX - alignment || quoll::fails_now())
        return ENOMEM;
    *ptr = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    return *ptr ? 0 : ENOMEM;
}
void* operator new(size_t size) {
    void* const ptr = quoll::fails_now() ? nullptr : malloc(size ? size : 1);
    if (!ptr) throw std::bad_alloc();
    return ptr;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return quoll::fails_now() ? nullptr : malloc(size ? size : 1);
}
void operator delete(void* ptr) noexcept { free(ptr); }
void operator delete(void* ptr, size_t) noexcept { free(ptr); }
