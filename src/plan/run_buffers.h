// The memory for blobs of the runs of a net, or of several nets.
#ifndef QUOLL_PLAN_RUN_BUFFERS_H
#define QUOLL_PLAN_RUN_BUFFERS_H

#include <memory>
#include <mutex>
#include <vector>

#include "plan/segment_memory.h"
#include "quoll/allocator.h"

namespace quoll {

// One block of memory for the blobs of one run at a time, which follows SegmentMemory: a request
// during a step gets the place of the planned block of exactly that size, unless something still
// occupies it, such as a blob that an observer holds. Temporary memory comes from what is free
// during the step, everything else from `rest`. Any thread may free, also after the run.
class Arena : public Allocator {
public:
    explicit Arena(Allocator* rest);
    ~Arena();
    // Starts the steps of this segment. False: no memory.
    bool begin(const SegmentMemory& memory);
    void begin_step(size_t step);
    void end();
    // No run uses it, and no blob is left in it.
    bool is_idle() const;
    void release();
    size_t capacity() const { return capacity_; }
    bool is_taken = false;  // RunBuffers' own

    void* fastMalloc(size_t size) override;
    void fastFree(void* ptr) override;
    Allocator* workspace() { return &workspace_; }
    // Makes temporary memory for each of the items of a batch that run side by side, so that they
    // do not wait for each other. False: no memory.
    bool make_item_pools(int items);
    Allocator* item_pool(int item) { return item_pools_[(size_t)item].get(); }

private:
    class Workspace : public Allocator {
    public:
        explicit Workspace(Arena* arena) : arena_(arena) {}
        void* fastMalloc(size_t size) override { return arena_->take_gap(size); }
        void fastFree(void* ptr) override { arena_->fastFree(ptr); }

    private:
        Arena* const arena_;
    };
    struct Range {
        size_t begin, end;
    };
    void* take_gap(size_t size);
    bool is_free(const Range& range) const;
    void* use(const Range& range);

    Allocator* const rest_;
    Workspace workspace_;
    std::vector<std::unique_ptr<PoolAllocator>> item_pools_;
    mutable std::mutex lock_;
    char* base_ = nullptr;
    size_t capacity_ = 0;
    const SegmentMemory* memory_ = nullptr;
    size_t next_ = 0, last_ = 0;   // planned blocks of the step
    std::vector<char> was_given_;  // of the step, for each planned block
    std::vector<Range> used_;      // ascending
};

// Shared by the Extractors of a net, so that it lives as long as the last of them.
class RunBuffers {
public:
    // Its pool hands out any kept block that is large enough, and drops one that is too small when
    // a larger one is asked for: there are never more blocks than were in use at once, and runs of
    // the same sizes soon find all they need.
    RunBuffers();
    // An arena for one run, which returns it with end(); null if there is no memory.
    Arena* begin(const SegmentMemory& memory);
    void end(Arena* arena);
    // Frees what no run uses.
    void release();
    bool owns(const Allocator* allocator) const;

    PoolAllocator pool;

private:
    mutable std::mutex lock_;
    std::vector<std::unique_ptr<Arena>> arenas_;
};

}  // namespace quoll

#endif
