// Short lists that a layer needs while it runs, without allocations once sizes have been seen.
#ifndef QUOLL_LAYER_SCRATCH_H
#define QUOLL_LAYER_SCRATCH_H

#include <new>
#include <utility>
#include <vector>

#include "quoll/mat.h"
#include "runtime/exceptions.h"

namespace quoll {

// An empty vector that reuses the memory of an earlier one of the same thread, and leaves it to a
// later one.
template <class T>
class Scratch {
public:
    Scratch() {
        if (kept().empty()) return;
        list_.swap(kept().back());
        kept().pop_back();
    }
    ~Scratch() {
        list_.clear();
        QUOLL_TRY { kept().push_back(std::move(list_)); }
        QUOLL_CATCH(const std::bad_alloc&) {}  // then the next list just has to allocate
    }
    std::vector<T>& operator*() { return list_; }
    const std::vector<T>& operator*() const { return list_; }
    std::vector<T>* operator->() { return &list_; }
    T& operator[](size_t i) { return list_[i]; }
    const T& operator[](size_t i) const { return list_[i]; }

private:
    Scratch(const Scratch&);
    Scratch& operator=(const Scratch&);
    static std::vector<std::vector<T>>& kept() {
        static thread_local std::vector<std::vector<T>> lists;
        return lists;
    }
    std::vector<T> list_;
};

// Sizes of blobs, as shape rules take and give them.
class ShapeList : public Scratch<Shape> {
public:
    ShapeList() {}
    explicit ShapeList(const Mat& m) { (**this).push_back(m.logical_shape()); }
    explicit ShapeList(const std::vector<Mat>& blobs) {
        for (const Mat& m : blobs) (**this).push_back(m.logical_shape());
    }
};

}  // namespace quoll

#endif
