#include "quoll/allocator.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <new>
#include <utility>

#include "quoll/log.h"
#include "runtime/exceptions.h"

namespace quoll {

// No single block may exceed this: half of the address space guards every size computation above
// it.
static const size_t kMaxBlock = SIZE_MAX / 4;

// Large blocks begin on pages of this size, if the system has them: fewer page faults when they are
// first touched, and fewer misses when addresses are translated.
static const size_t kHugePage = 2 << 20;

// All the memory that this process can have: systems promise more, and kill the process that
// touches it.
static size_t memory_of_machine() {
    size_t most = kMaxBlock;
#if defined(__linux__)
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0) most = std::min(most, (size_t)pages * (size_t)size);
    if (FILE* fp = fopen("/sys/fs/cgroup/memory.max", "re")) {  // "max" without a limit
        unsigned long long limit = 0;
        if (fscanf(fp, "%llu", &limit) == 1)
            most = (size_t)std::min<unsigned long long>(most, limit);
        fclose(fp);
    }
#endif
    return most;
}

#if defined(__linux__)
// Bytes of the large blocks in use: each of them may fit, but all together not.
static std::atomic<size_t> large_blocks(0);

// The bytes of a block that count; with smaller blocks the system's own memory ends first.
static size_t large_size(void* ptr) {
    const size_t size = malloc_usable_size(ptr);
    return size < kHugePage ? 0 : size;
}

static bool take_large(void* ptr, size_t most) {
    const size_t size = large_size(ptr);
    if (size == 0 || large_blocks.fetch_add(size, std::memory_order_relaxed) + size <= most)
        return true;
    large_blocks.fetch_sub(size, std::memory_order_relaxed);
    return false;
}
#endif

void* fast_malloc(size_t size) {
    static const size_t most = memory_of_machine();
    if (size > most) return nullptr;
#if defined(_WIN32)
    return _aligned_malloc(size + kMallocOverread, kMallocAlign);
#else
    void* ptr = nullptr;
    const bool huge = size >= kHugePage;
    if (posix_memalign(&ptr, huge ? kHugePage : (size_t)kMallocAlign, size + kMallocOverread))
        return nullptr;
#if defined(__linux__)
    if (!take_large(ptr, most + kHugePage)) {
        free(ptr);
        return nullptr;
    }
#endif
#if defined(MADV_HUGEPAGE)
    // Whole pages only: what is behind the block would take memory too.
    if (huge) madvise(ptr, size / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
    return ptr;
#endif
}

void fast_free(void* ptr) {
#if defined(_WIN32)
    _aligned_free(ptr);
#else
#if defined(__linux__)
    if (const size_t size = ptr ? large_size(ptr) : 0)
        large_blocks.fetch_sub(size, std::memory_order_relaxed);
#endif
    free(ptr);
#endif
}

Allocator::~Allocator() {}

namespace {

// The bookkeeping that both pool allocators share; not thread-safe by itself.
class Pool {
public:
    float ratio = 0.75f;
    size_t drop_threshold = 10;

    ~Pool() {
        clear();
        for (const Block& b : used_)
            QUOLL_LOGE("[PoolAllocator] destroyed while a block of %zu bytes is in use", b.first);
    }

    void clear() {
        for (const Block& b : kept_) fast_free(b.second);
        kept_.clear();
    }

    void* take(size_t size) {
        // The blocks that were given back last come first: loops ask for the same sizes again and
        // again.
        auto best = kept_.end();
        for (auto it = kept_.end(); it != kept_.begin();) {
            --it;
            if (it->first < size || it->first * ratio > size) continue;
            if (best == kept_.end() || it->first < best->first) best = it;
            if (it->first == size) break;
        }
        if (best != kept_.end()) {
            used_.splice(used_.end(), kept_, best);
            return used_.back().second;
        }
        if (kept_.size() >= drop_threshold) drop_one(size);
        void* ptr = fast_malloc(size);
        if (!ptr && !kept_.empty()) {  // the kept blocks may be what stands in the way
            clear();
            ptr = fast_malloc(size);
        }
        QUOLL_TRY {
            if (ptr) used_.emplace_back(size, ptr);
        }
        QUOLL_CATCH(const std::bad_alloc&) {
            fast_free(ptr);
            return nullptr;
        }
        return ptr;
    }

    // From both ends: blocks come back in the order in which they were taken, or the other way
    // round.
    void give(void* ptr) {
        for (auto first = used_.begin(), last = used_.end(); first != last; ++first) {
            if (first->second == ptr) return keep(first);
            if (--last == first) break;
            if (last->second == ptr) return keep(last);
        }
        if (ptr) QUOLL_LOGE("[PoolAllocator] %p is not one of this pool's blocks", ptr);
    }

private:
    typedef std::pair<size_t, void*> Block;

    void keep(std::list<Block>::iterator block) { kept_.splice(kept_.end(), used_, block); }

    // None of the kept blocks fits: if all are smaller, the smallest is the least useful one, else
    // the largest is.
    void drop_one(size_t size) {
        auto smallest = kept_.begin(), largest = kept_.begin();
        for (auto it = kept_.begin(); it != kept_.end(); ++it) {
            if (it->first < smallest->first) smallest = it;
            if (it->first > largest->first) largest = it;
        }
        if (largest == kept_.end()) return;
        auto victim = largest->first < size ? smallest : largest;
        fast_free(victim->second);
        kept_.erase(victim);
    }

    std::list<Block> kept_, used_;
};

}  // namespace

struct PoolAllocator::Private {
    Pool pool;
    std::mutex mutex;
};

PoolAllocator::PoolAllocator() : d(new Private) {}
PoolAllocator::~PoolAllocator() { delete d; }

void PoolAllocator::set_size_compare_ratio(float ratio) {
    if (!(ratio >= 0.f && ratio <= 1.f)) {
        QUOLL_LOGE("[PoolAllocator] size compare ratio: expected 0 to 1, got %g", ratio);
        return;
    }
    std::lock_guard<std::mutex> lock(d->mutex);
    d->pool.ratio = ratio;
}

void PoolAllocator::set_size_drop_threshold(size_t count) {
    std::lock_guard<std::mutex> lock(d->mutex);
    d->pool.drop_threshold = count;
}

void PoolAllocator::clear() {
    std::lock_guard<std::mutex> lock(d->mutex);
    d->pool.clear();
}

void* PoolAllocator::fastMalloc(size_t size) {
    std::lock_guard<std::mutex> lock(d->mutex);
    return d->pool.take(size);
}

void PoolAllocator::fastFree(void* ptr) {
    std::lock_guard<std::mutex> lock(d->mutex);
    d->pool.give(ptr);
}

struct UnlockedPoolAllocator::Private {
    Pool pool;
};

UnlockedPoolAllocator::UnlockedPoolAllocator() : d(new Private) {}
UnlockedPoolAllocator::~UnlockedPoolAllocator() { delete d; }

void UnlockedPoolAllocator::set_size_compare_ratio(float ratio) {
    if (!(ratio >= 0.f && ratio <= 1.f)) {
        QUOLL_LOGE("[UnlockedPoolAllocator] size compare ratio: expected 0 to 1, got %g", ratio);
        return;
    }
    d->pool.ratio = ratio;
}

void UnlockedPoolAllocator::set_size_drop_threshold(size_t count) {
    d->pool.drop_threshold = count;
}
void UnlockedPoolAllocator::clear() { d->pool.clear(); }
void* UnlockedPoolAllocator::fastMalloc(size_t size) { return d->pool.take(size); }
void UnlockedPoolAllocator::fastFree(void* ptr) { d->pool.give(ptr); }

}  // namespace quoll
