// Memory of Mats: pools, and what belongs to Python objects.
#ifndef QUOLL_PYTHON_MEMORY_H
#define QUOLL_PYTHON_MEMORY_H

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>

#include "quoll/allocator.h"
#include "quoll/mat.h"

namespace quoll_python {

namespace nb = nanobind;

// A pool that lives until its last block is given back: Mats may outlive the Python object.
class SharedPool : public quoll::Allocator {
public:
    SharedPool();
    ~SharedPool() override;
    void* fastMalloc(size_t size) override;
    void fastFree(void* ptr) override;
    void add_user() { users_.fetch_add(1, std::memory_order_relaxed); }
    void drop_user();

    quoll::PoolAllocator pool;

private:
    std::atomic<long> users_{0};  // handles and blocks
};

// The allocator, if it is such a pool; else null.
SharedPool* shared_pool(quoll::Allocator* allocator);

// The Python object.
class Pool {
public:
    Pool() : Pool(new SharedPool) {}
    explicit Pool(SharedPool* shared) : shared_(shared) { shared->add_user(); }
    ~Pool() { shared_->drop_user(); }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    SharedPool* get() const { return shared_; }

private:
    SharedPool* shared_;
};

inline SharedPool* pool_of(const std::shared_ptr<Pool>& pool) { return pool ? pool->get() : nullptr; }

// Makes `mat`, a view, the owner of what keeps its memory alive: when the last Mat that shares it goes, `owner` is deleted
// under the GIL, then or soon after.
struct Owner {
    virtual ~Owner() {}
};
void give_owner(quoll::Mat* mat, std::unique_ptr<Owner> owner);
bool is_borrowed(const quoll::Mat& mat);

// A Mat that vector loads may overrun by quoll::kMallocOverread bytes and whose rows lie as kernels expect: `mat`, or a
// copy of it.
quoll::Mat safe_to_run(const quoll::Mat& mat);

void bind_allocators(nb::module_& m);

}  // namespace quoll_python

#endif
