#include "count_allocations.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <new>

static std::atomic<size_t> blocks{0}, small{0};

namespace quoll {

size_t block_allocations() { return blocks.load(); }
size_t small_allocations() { return small.load(); }

}  // namespace quoll

// The program's own definitions have precedence over those of the C and C++ libraries.
extern "C" int posix_memalign(void** ptr, size_t alignment, size_t size) noexcept {
    blocks++;
    if (size > SIZE_MAX - alignment) return ENOMEM;
    *ptr = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    return *ptr ? 0 : ENOMEM;
}

void* operator new(size_t size) {
    small++;
    void* ptr = malloc(size ? size : 1);
    if (!ptr) throw std::bad_alloc();
    return ptr;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    small++;
    return malloc(size ? size : 1);
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new[](size_t size, const std::nothrow_t& tag) noexcept {
    return operator new(size, tag);
}
void operator delete(void* ptr) noexcept { free(ptr); }
void operator delete(void* ptr, size_t) noexcept { free(ptr); }
void operator delete[](void* ptr) noexcept { free(ptr); }
void operator delete[](void* ptr, size_t) noexcept { free(ptr); }
