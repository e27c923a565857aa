// Where a layer that takes one item of a batch at a time writes: into the batch itself.
#ifndef QUOLL_PLAN_BATCH_SLOT_H
#define QUOLL_PLAN_BATCH_SLOT_H

#include <mutex>
#include <vector>

#include "layer/common/side_by_side.h"
#include "quoll/layer.h"

namespace quoll {

// Whether a layer is given one; those of the application may keep what they make.
inline bool writes_into_batch(const Layer& layer) {
    return layer.typeindex >= 0 && layer.tops.size() == 1;
}

// For a batch of n items of which layer takes one at a time, with inputs of these sizes (of one
// item). outputs: of the batch.
SideBySide items_side_by_side(const Layer& layer, const std::vector<Shape>& inputs,
                              const std::vector<Shape>& outputs, int n, const Option& opt);

// For slots of items that run side by side: one of them is in `allocator` at a time.
class SharedAllocator : public Allocator {
public:
    // Null: the system's memory.
    explicit SharedAllocator(Allocator* allocator) : allocator_(allocator) {}
    void* fastMalloc(size_t size) override;
    void fastFree(void* ptr) override;

private:
    Allocator* const allocator_;
    std::mutex lock_;
};

// The layer finds, as its only output, a Mat over the item's part of the batch, which Mat::create
// keeps if it asks for the same size, elempack and allocator: it seems to have an owner of its own,
// a count and an allocator here. What the layer makes elsewhere is copied.
class BatchSlot : private Allocator {
public:
    explicit BatchSlot(Allocator* allocator) : allocator_(allocator), count_(0) {}
    // The layer must then run with this blob_allocator, and what it makes must go before the next
    // offer. Nothing is offered of an empty `all`.
    void offer(Mat& all, int item, Mat* top);
    Allocator* allocator() { return this; }
    // Whether `m` lies in what was offered.
    bool holds(const Mat& m) const { return m.refcount == &count_; }

private:
    void* fastMalloc(size_t size) override;
    void fastFree(void* ptr) override;

    Allocator* const allocator_;
    int count_;  // owners of the Mat that is being filled
};

}  // namespace quoll

#endif
