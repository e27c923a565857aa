#include "plan/batch_slot.h"

#include <algorithm>

namespace quoll {

namespace {

// The time to read or write a value, in multiply-adds.
const double kValue = 16;

// The work of an item in multiply-adds; if it has none, the values that it reads and writes.
double item_work(const Layer& layer, const std::vector<Shape>& inputs, std::vector<Shape> outputs) {
    double values = 0;
    for (Shape& s : outputs) s.n = 1;
    for (const Shape& s : inputs) values += (double)s.total();
    for (const Shape& s : outputs) values += (double)s.total();
    return std::max(values * kValue, (double)layer.macs(inputs, outputs));
}

}  // namespace

SideBySide items_side_by_side(const Layer& layer, const std::vector<Shape>& inputs,
                              const std::vector<Shape>& outputs, int n, const Option& opt) {
    const int threads = opt.num_threads;
    if (!QUOLL_THREADS || n <= 1 || threads <= 1 || outputs.size() != 1 ||
        !writes_into_batch(layer))
        return {1, threads};
    return side_by_side(n, item_work(layer, inputs, outputs), threads);
}

void* SharedAllocator::fastMalloc(size_t size) {
    std::lock_guard<std::mutex> lock(lock_);
    return allocator_ ? allocator_->fastMalloc(size) : fast_malloc(size);
}

void SharedAllocator::fastFree(void* ptr) {
    std::lock_guard<std::mutex> lock(lock_);
    if (allocator_)
        allocator_->fastFree(ptr);
    else
        fast_free(ptr);
}

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
