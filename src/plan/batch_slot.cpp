#include "plan/batch_slot.h"

namespace quoll {

void BatchSlot::offer(Mat& all, int item, Mat* top) {
    if (all.empty()) return;
    *top = all.batch(item);  // a view, without an owner
    top->refcount = &count_;
    top->allocator = this;
    count_ = 1;
}

void* BatchSlot::fastMalloc(size_t size) {
    return allocator_ ? allocator_->fastMalloc(size) : fast_malloc(size);
}

void BatchSlot::fastFree(void* ptr) {
    if (ptr == &count_) return;
    if (allocator_)
        allocator_->fastFree(ptr);
    else
        fast_free(ptr);
}

}  // namespace quoll
