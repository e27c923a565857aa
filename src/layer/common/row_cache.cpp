#include "layer/common/row_cache.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "quoll/allocator.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// In front of a block's reference count.
struct Header {
    const void* data;
    int w, c, capacity;  // rows
    size_t cstep;
    std::atomic<int> rows;  // that Mats have, of any length, which share the block
};
static_assert(sizeof(Header) <= kMallocAlign, "what follows is aligned");

class CacheAllocator : public Allocator {
public:
    void* fastMalloc(size_t size) override {
        if (size > SIZE_MAX - kMallocAlign) return nullptr;
        char* block = (char*)fast_malloc(size + kMallocAlign);
        if (!block) return nullptr;
        new (block) Header();
        return block + kMallocAlign;
    }
    void fastFree(void* ptr) override { fast_free(ptr ? (char*)ptr - kMallocAlign : nullptr); }
};

// Applications keep Mats until they end.
Allocator* cache_allocator() {
    static CacheAllocator* const allocator = new (std::nothrow) CacheAllocator;
    return allocator;
}

Header* header_of(const Mat& m) { return (Header*)((char*)m.refcount - kMallocAlign); }

// Whether `cur` fits after `past` in the same block, and nothing else is there; if so, the room is
// reserved.
bool reserve_rows(const Mat& past, const Mat& cur) {
    if (past.empty() || !past.refcount || past.allocator != cache_allocator()) return false;
    Header* const h = header_of(past);
    const bool whole = past.data == h->data && past.w == h->w && past.c == h->c &&
                       past.cstep == h->cstep && past.n == 1;
    int rows = past.h;
    return whole && cur.h <= h->capacity - rows &&
           h->rows.compare_exchange_strong(rows, rows + cur.h);
}

// Room for a quarter more rows, so that copying costs a constant amount of time per row.
int create_cache(const Mat& cur, int rows, Mat* all) {
    const int capacity = (int)std::min<int64_t>(rows + std::max<int64_t>(32, rows / 4), INT_MAX);
    Allocator* const allocator = cache_allocator();
    if (!allocator) return kOutOfMemory;
    all->create(Shape(cur.w, capacity, cur.c), 1, allocator);
    if (all->empty()) return kOutOfMemory;
    Header* const h = header_of(*all);
    h->data = all->data, h->cstep = all->cstep;
    h->w = all->w, h->c = all->c, h->capacity = capacity;
    h->rows = all->h = rows;
    return kOk;
}

void copy_rows(const Mat& from, int first, Mat* to) {
    const size_t size = (size_t)from.w * from.h;
    for (int q = 0; q < from.c && size; q++)
        memcpy((float*)to->data + q * to->cstep + (size_t)first * to->w,
               (const float*)from.data + q * from.cstep, size * sizeof(float));
}

}  // namespace

int append_rows(const Mat& past, const Mat& cur, const Option& opt, Mat* all) {
    const int old = past.empty() ? 0 : past.h, rows = old + cur.h;
    if (opt.use_growing_cache && reserve_rows(past, cur)) {
        *all = past;
        all->h = rows;
    } else {
        if (opt.use_growing_cache) {
            QUOLL_RETURN_IF_ERROR(create_cache(cur, rows, all));
        } else {
            all->create(Shape(cur.w, rows, cur.c), 1, opt.blob_allocator);
            if (all->empty()) return kOutOfMemory;
        }
        if (old) copy_rows(past, 0, all);
    }
    copy_rows(cur, old, all);
    return kOk;
}

}  // namespace quoll
