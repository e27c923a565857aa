// Buffers that end (or begin) at an inaccessible page, so that one value too many is a crash.
#ifndef QUOLL_TESTS_KERNEL_GUARDED_H
#define QUOLL_TESTS_KERNEL_GUARDED_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

template <class T>
class Guarded {
public:
    // count values of T. With at_end the last one touches the guard page behind it, otherwise the
    // first one follows the guard page before it; `shift` bytes move it away from the page, for
    // other alignments.
    explicit Guarded(size_t count, bool at_end = true, size_t shift = 0) : count_(count) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        const size_t bytes = count * sizeof(T) + shift;
        const size_t inner = (bytes + page - 1) / page * page;
        length_ = inner + 2 * page;
        base_ = (char*)mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base_ == MAP_FAILED ||
            (inner && mprotect(base_ + page, inner, PROT_READ | PROT_WRITE))) {
            perror("Guarded");
            abort();
        }
        data_ = (T*)(at_end ? base_ + page + inner - bytes : base_ + page + shift);
    }
    ~Guarded() { munmap(base_, length_); }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return count_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    T* begin() { return data_; }
    T* end() { return data_ + count_; }

private:
    size_t count_, length_;
    char* base_;
    T* data_;
};

#endif
