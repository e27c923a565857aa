// Where a layer that takes one item of a batch at a time writes: into the batch itself.
#ifndef QUOLL_PLAN_BATCH_SLOT_H
#define QUOLL_PLAN_BATCH_SLOT_H

#include <mutex>
#include <vector>

#include "layer/common/side_by_side.h"
#include "quoll/layer.h"

namespace quoll {

// Whether a layer is given such a place; layers of the application may keep what they make.
inline bool writes_into_batch(const Layer& layer) {
    return layer.typeindex >= 0 && layer.tops.size() == 1;
}

// How a layer that takes one item at a time runs a batch of n items: how many side by side. inputs:
// sizes of one item; outputs: sizes of the batch.
SideBySide items_side_by_side(const Layer& layer, const std::vector<Shape>& inputs,
                              const std::vector<Shape>& outputs, int n, const Option& opt);

// An allocator that the slots of items that run side by side share: it calls `allocator` from one
// thread at a time.
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

// A place for one item of a batch. The layer's only output is preset to a Mat over the item's part
// of the batch, which seems to have its own reference count and allocator (both are of this class).
// Mat::create keeps that memory if it is asked for the same size, elempack and allocator. What the
// layer makes elsewhere is copied.
class BatchSlot : private Allocator {
public:
    explicit BatchSlot(Allocator* allocator) : allocator_(allocator), count_(0) {}
    // Presets *top. The layer must then run with this blob_allocator, and its output must be
    // released before the next offer. Does nothing for an empty `all`.
    void offer(Mat& all, int item, Mat* top);
    Allocator* allocator() { return this; }
    // Whether `m` is in the memory that was offered.
    bool holds(const Mat& m) const { return m.refcount == &count_; }

private:
    void* fastMalloc(size_t size) override;
    void fastFree(void* ptr) override;

    Allocator* const allocator_;
    int count_;  // owners of the Mat that is being filled
};

}  // namespace quoll

#endif
