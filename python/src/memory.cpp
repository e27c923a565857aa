#include "memory.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "calls.h"

namespace quoll_python {

using quoll::Mat;

namespace {

// All pools: allocators of the library have no type information to ask.
struct Pools {
    std::mutex mutex;
    std::unordered_set<quoll::Allocator*> all;
};
Pools& pools() {
    static Pools* p = new Pools;
    return *p;
}

}  // namespace

SharedPool::SharedPool() {
    const std::lock_guard<std::mutex> lock(pools().mutex);
    pools().all.insert(this);
}

SharedPool::~SharedPool() {
    const std::lock_guard<std::mutex> lock(pools().mutex);
    pools().all.erase(this);
}

SharedPool* shared_pool(quoll::Allocator* allocator) {
    const std::lock_guard<std::mutex> lock(pools().mutex);
    return pools().all.count(allocator) ? static_cast<SharedPool*>(allocator) : nullptr;
}

void* SharedPool::fastMalloc(size_t size) {
    void* const ptr = pool.fastMalloc(size);
    if (ptr) add_user();
    return ptr;
}

void SharedPool::fastFree(void* ptr) {
    pool.fastFree(ptr);
    drop_user();
}

void SharedPool::drop_user() {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

namespace {

// Owners that lost their last Mat where the GIL was not held.
struct Orphans {
    std::mutex mutex;
    std::vector<Owner*> owners;
    bool scheduled = false;
};
Orphans& orphans() {
    static Orphans* all = new Orphans;
    return *all;
}

int delete_orphans(void*) {
    std::vector<Owner*> owners;
    {
        const std::lock_guard<std::mutex> lock(orphans().mutex);
        owners.swap(orphans().owners);
        orphans().scheduled = false;
    }
    for (Owner* owner : owners) delete owner;
    return 0;
}

void delete_owner(Owner* owner) {
    if (!Py_IsInitialized()) return;  // its Python objects are gone
    if (holds_gil()) {
        delete owner;
        return;
    }
    bool schedule;
    {
        const std::lock_guard<std::mutex> lock(orphans().mutex);
        orphans().owners.push_back(owner);
        schedule = !orphans().scheduled;
        orphans().scheduled = true;
    }
    // Refused when too much is pending: then the next one tries again.
    if (schedule && Py_AddPendingCall(delete_orphans, nullptr) != 0) {
        const std::lock_guard<std::mutex> lock(orphans().mutex);
        orphans().scheduled = false;
    }
}

// A Mat frees its memory by the address of its counter; layers may also allocate by the allocator of an input.
class Borrowed : public quoll::Allocator {
public:
    int* add(std::unique_ptr<Owner> owner) {
        std::unique_ptr<int> counter(new int(1));
        const std::lock_guard<std::mutex> lock(mutex_);
        owners_[counter.get()] = owner.release();
        return counter.release();
    }
    void* fastMalloc(size_t size) override { return quoll::fast_malloc(size); }
    void fastFree(void* ptr) override {
        Owner* owner = nullptr;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto found = owners_.find(ptr);
            if (found != owners_.end()) {
                owner = found->second;
                owners_.erase(found);
            }
        }
        if (!owner) return quoll::fast_free(ptr);
        delete (int*)ptr;
        delete_owner(owner);
    }
    bool has(void* counter) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return owners_.count(counter) != 0;
    }

private:
    std::mutex mutex_;
    std::unordered_map<void*, Owner*> owners_;
};

Borrowed& borrowed() {
    static Borrowed* all = new Borrowed;
    return *all;
}

}  // namespace

void give_owner(Mat* mat, std::unique_ptr<Owner> owner) {
    mat->refcount = borrowed().add(std::move(owner));
    mat->allocator = &borrowed();
}

bool is_borrowed(const Mat& mat) { return mat.refcount && mat.allocator == &borrowed() && borrowed().has(mat.refcount); }

Mat safe_to_run(const Mat& mat) {
    if (mat.empty() || !is_borrowed(mat)) return mat;
    const uintptr_t kPage = 4096, kAlign = 16;
    const uintptr_t end = (uintptr_t)mat.data + mat.total() * mat.elemsize;
    const bool readable = (end - 1) / kPage == (end - 1 + quoll::kMallocOverread) / kPage;
    if (readable && (uintptr_t)mat.data % kAlign == 0) return mat;
    Mat copy = mat.clone();
    if (copy.empty()) throw std::bad_alloc();
    return copy;
}

namespace {

// What fastMalloc gives to Python: a block that cannot be freed twice.
struct Block {
    std::shared_ptr<Pool> pool;
    void* ptr;
    ~Block() { free(); }
    void free() {
        if (ptr) pool->get()->fastFree(ptr);
        ptr = nullptr;
    }
};

template <class T>
void bind_pool(nb::module_& m, const char* name, const char* doc) {
    nb::class_<T, Pool>(m, name, doc).def(nb::init<>());
}

// In C++ one thread at a time may use it; in Python, where memory is freed by whatever thread drops the last reference, it
// is locked too.
class UnlockedPool : public Pool {};
class LockedPool : public Pool {};

}  // namespace

void bind_allocators(nb::module_& m) {
    nb::class_<Block>(m, "Block", "A block of memory from an allocator's fastMalloc; given back when it goes.");
    nb::class_<Pool>(m, "Allocator", "Memory for Mats.")
        .def("set_size_compare_ratio", [](Pool& p, float ratio) { p.get()->pool.set_size_compare_ratio(ratio); }, nb::arg("ratio"),
             "A kept block serves a request when block * ratio <= size <= block; 0 to 1, at first 0.75.")
        .def("set_size_drop_threshold", [](Pool& p, size_t count) { p.get()->pool.set_size_drop_threshold(count); }, nb::arg("count"),
             "The number of kept blocks above which one is given back to the system; at first 10.")
        .def("clear", [](Pool& p) { p.get()->pool.clear(); }, "Gives all kept blocks back to the system.")
        .def(
            "fastMalloc",
            [](std::shared_ptr<Pool> p, size_t size) {
                void* const ptr = p->get()->fastMalloc(size);
                if (!ptr) throw std::bad_alloc();
                return std::unique_ptr<Block>(new Block{p, ptr});
            },
            nb::arg("size"), "A block of at least `size` bytes, aligned to 64.")
        .def("fastFree", [](Pool&, Block& block) { block.free(); }, nb::arg("block"), "Gives a block back before its object goes.")
        .def("__eq__", [](const Pool& a, nb::handle b) { return nb::isinstance<Pool>(b) && nb::cast<Pool&>(b).get() == a.get(); },
             nb::arg().none())
        .def("__hash__", [](const Pool& p) { return (size_t)p.get(); });
    bind_pool<LockedPool>(m, "PoolAllocator", "Keeps freed blocks and hands them out again. Mats may outlive the object.");
    bind_pool<UnlockedPool>(m, "UnlockedPoolAllocator", "The same as PoolAllocator: what Python frees it frees in any thread.");
}

}  // namespace quoll_python
