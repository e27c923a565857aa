// Memory for Mats: the aligned malloc that every Mat uses by default, the Allocator interface that
// replaces it, and two pooling allocators.
#ifndef QUOLL_ALLOCATOR_H
#define QUOLL_ALLOCATOR_H

#include <stddef.h>

namespace quoll {

// Alignment in bytes of every pointer from fast_malloc and from the pool allocators.
enum { kMallocAlign = 64 };
// Bytes past the end of every such block that may be read (never written): a vector load of the
// last elements stays inside the block.
enum { kMallocOverread = 64 };

// Rounds size up to a multiple of n, a power of two.
inline size_t align_size(size_t size, size_t n) { return (size + n - 1) & ~(n - 1); }

// An aligned block of `size` bytes, or null when there is no memory (or the size is absurd).
void* fast_malloc(size_t size);
void fast_free(void* ptr);

class Allocator {
public:
    virtual ~Allocator();
    // A block of at least `size` bytes, aligned to kMallocAlign, kMallocOverread bytes readable
    // past its end; null on failure.
    virtual void* fastMalloc(size_t size) = 0;
    virtual void fastFree(void* ptr) = 0;
};

// Keeps freed blocks and hands them out again for requests of a similar size. The locked form may
// be shared between threads. Destroying a pool while blocks are still in use is reported and leaks
// them.
class PoolAllocator : public Allocator {
public:
    PoolAllocator();
    ~PoolAllocator();

    // A kept block serves a request when block * ratio <= size <= block; 0 <= ratio <= 1, default
    // 0.75.
    void set_size_compare_ratio(float ratio);
    // The number of kept blocks above which the smallest or largest is given back; default 10.
    void set_size_drop_threshold(size_t count);
    // Gives all kept blocks back to the system.
    void clear();

    void* fastMalloc(size_t size) override;
    void fastFree(void* ptr) override;

private:
    PoolAllocator(const PoolAllocator&);
    PoolAllocator& operator=(const PoolAllocator&);
    struct Private;
    Private* const d;
};

// The same without a lock: for one thread at a time.
class UnlockedPoolAllocator : public Allocator {
public:
    UnlockedPoolAllocator();
    ~UnlockedPoolAllocator();

    void set_size_compare_ratio(float ratio);
    void set_size_drop_threshold(size_t count);
    void clear();

    void* fastMalloc(size_t size) override;
    void fastFree(void* ptr) override;

private:
    UnlockedPoolAllocator(const UnlockedPoolAllocator&);
    UnlockedPoolAllocator& operator=(const UnlockedPoolAllocator&);
    struct Private;
    Private* const d;
};

}  // namespace quoll

#endif
