// Where a layer that takes one item of a batch at a time writes: into the batch itself.
#ifndef QUOLL_PLAN_BATCH_SLOT_H
#define QUOLL_PLAN_BATCH_SLOT_H

#include "quoll/layer.h"

namespace quoll {

// Whether a layer is given one; those of the application may keep what they make.
inline bool writes_into_batch(const Layer& layer) {
    return layer.typeindex >= 0 && layer.tops.size() == 1;
}

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
