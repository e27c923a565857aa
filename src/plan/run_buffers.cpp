#include "plan/run_buffers.h"

#include <algorithm>
#include <new>

#include "runtime/exceptions.h"

namespace quoll {

// The system backs a block of fast_malloc with pages of this size as far as the block fills them.
// If a little is missing, the first run is faster with one page more than with hundreds of small
// ones.
static size_t fill_pages(size_t bytes) {
    const size_t page = 2 << 20, behind = bytes % page;
    return bytes > page && behind > page / 2 ? bytes - behind + page : bytes;
}

Arena::Arena(Allocator* rest) : rest_(rest), workspace_(this) {}
// What somebody still reads is leaked, as in a pool.
Arena::~Arena() {
    if (used_.empty()) fast_free(base_);
}

bool Arena::begin(const SegmentMemory& memory) {
    std::lock_guard<std::mutex> lock(lock_);
    const size_t bytes = memory.plan.bytes + kMallocOverread;
    if (capacity_ < bytes) {
        fast_free(base_);
        base_ = (char*)fast_malloc(fill_pages(bytes));
        capacity_ = base_ ? bytes : 0;
    }
    if (!base_) return false;
    memory_ = &memory;
    next_ = last_ = 0;
    return true;
}

void Arena::begin_step(size_t step) {
    std::lock_guard<std::mutex> lock(lock_);
    next_ = memory_->first[step], last_ = memory_->first[step + 1];
    was_given_.assign(last_ - next_, 0);
}

void Arena::end() {
    std::lock_guard<std::mutex> lock(lock_);
    memory_ = nullptr;
}

bool Arena::is_idle() const {
    std::lock_guard<std::mutex> lock(lock_);
    return used_.empty();
}

void Arena::release() {
    std::lock_guard<std::mutex> lock(lock_);
    fast_free(base_);
    base_ = nullptr, capacity_ = 0;
    item_pools_.clear();
}

bool Arena::make_item_pools(int items) {
    QUOLL_TRY {
        while ((int)item_pools_.size() < items) item_pools_.emplace_back(new PoolAllocator);
    }
    QUOLL_CATCH(const std::bad_alloc&) { return false; }
    return true;
}

bool Arena::is_free(const Range& range) const {
    return std::none_of(used_.begin(), used_.end(),
                        [&](const Range& u) { return u.begin < range.end && range.begin < u.end; });
}

void* Arena::use(const Range& range) {
    const auto at =
        std::upper_bound(used_.begin(), used_.end(), range,
                         [](const Range& a, const Range& b) { return a.begin < b.begin; });
    used_.insert(at, range);
    return base_ + range.begin;
}

void* Arena::fastMalloc(size_t size) {
    {
        std::lock_guard<std::mutex> lock(lock_);
        for (size_t i = next_; memory_ && i < last_; i++) {
            const SegmentMemory::Block& block = memory_->blocks[i];
            if (was_given_[i - next_] || block.bytes != size) continue;
            const Range range = {block.offset, block.offset + size};
            if (!is_free(range)) continue;
            was_given_[i - next_] = 1;
            return use(range);
        }
    }
    return rest_->fastMalloc(size);
}

// The smallest range between those that are in use now and those that the step may still ask for.
void* Arena::take_gap(size_t size) {
    {
        std::lock_guard<std::mutex> lock(lock_);
        const size_t bytes = align_size(size, kMallocAlign);
        size_t end = 0, best = 0, smallest = (size_t)-1;
        const auto consider = [&](size_t begin) {
            if (begin >= end + bytes && begin - end < smallest) {
                smallest = begin - end;
                best = end;
            }
        };
        size_t used = 0;
        while (memory_) {
            // The next range of either kind that ends beyond `end`.
            Range next = {memory_->plan.bytes, (size_t)-1};
            while (used < used_.size() && used_[used].end <= end) used++;
            if (used < used_.size() && used_[used].begin < next.begin) next = used_[used];
            for (size_t i = next_; i < last_; i++) {
                const SegmentMemory::Block& b = memory_->blocks[i];
                const size_t behind = align_size(b.offset + b.bytes, kMallocAlign);
                if (!was_given_[i - next_] && behind > end && b.offset < next.begin)
                    next = {b.offset, behind};
            }
            consider(next.begin);
            if (next.end == (size_t)-1) break;
            end = align_size(next.end, kMallocAlign);
        }
        if (smallest != (size_t)-1) return use({best, best + bytes});
    }
    return rest_->fastMalloc(size);
}

void Arena::fastFree(void* ptr) {
    {
        std::lock_guard<std::mutex> lock(lock_);
        if (base_ && ptr >= base_ && ptr < base_ + capacity_) {
            const size_t begin = (size_t)((char*)ptr - base_);
            const auto at = std::lower_bound(
                used_.begin(), used_.end(), begin,
                [](const Range& range, size_t offset) { return range.begin < offset; });
            used_.erase(at);
            return;
        }
    }
    rest_->fastFree(ptr);
}

RunBuffers::RunBuffers() {
    pool.set_size_compare_ratio(0.f);
    pool.set_size_drop_threshold(1);
}

// The smallest arena that is large enough, else the largest, which grows.
Arena* RunBuffers::begin(const SegmentMemory& memory) {
    std::lock_guard<std::mutex> lock(lock_);
    const size_t bytes = memory.plan.bytes + kMallocOverread;
    Arena* best = nullptr;
    for (const auto& arena : arenas_) {
        if (arena->is_taken || !arena->is_idle()) continue;
        const bool fits = arena->capacity() >= bytes;
        const bool best_fits = best && best->capacity() >= bytes;
        const bool smaller = best && arena->capacity() < best->capacity();
        if (!best || (fits && (!best_fits || smaller)) || (!fits && !best_fits && !smaller))
            best = arena.get();
    }
    if (!best) {
        arenas_.push_back(std::unique_ptr<Arena>(new Arena(&pool)));
        best = arenas_.back().get();
    }
    if (!best->begin(memory)) return nullptr;
    best->is_taken = true;
    return best;
}

void RunBuffers::end(Arena* arena) {
    std::lock_guard<std::mutex> lock(lock_);
    arena->end();
    arena->is_taken = false;
}

void RunBuffers::release() {
    std::lock_guard<std::mutex> lock(lock_);
    for (const auto& arena : arenas_)
        if (!arena->is_taken && arena->is_idle()) arena->release();
    pool.clear();
}

bool RunBuffers::owns(const Allocator* allocator) const {
    if (allocator == &pool) return true;
    std::lock_guard<std::mutex> lock(lock_);
    return std::any_of(arenas_.begin(), arenas_.end(),
                       [&](const auto& arena) { return arena.get() == allocator; });
}

}  // namespace quoll
