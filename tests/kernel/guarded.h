// Buffers that end (or begin) at an inaccessible page, so that one value too many is a crash; and
// an allocator of such blocks.
#ifndef QUOLL_TESTS_KERNEL_GUARDED_H
#define QUOLL_TESTS_KERNEL_GUARDED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <map>
#include <mutex>

#include "quoll/allocator.h"

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

// Blocks with a page that faults on either side, full of NaN (of any type of float) at first. With
// at_end what may be read ends at the page behind, otherwise the block begins at the page before.
// damage() counts the freed blocks of which bytes behind the end were written.
class GuardedAllocator : public quoll::Allocator {
public:
    explicit GuardedAllocator(bool at_end) : at_end_(at_end) {}
    ~GuardedAllocator() override {
        if (!blocks_.empty()) fprintf(stderr, "%zu guarded blocks are left\n", blocks_.size());
    }
    void* fastMalloc(size_t size) override {
        const size_t whole = quoll::align_size(size, quoll::kMallocAlign) + quoll::kMallocOverread;
        Guarded<unsigned char>* block = new Guarded<unsigned char>(whole, at_end_);
        memset(block->data(), kFill, whole);
        const std::lock_guard<std::mutex> lock(mutex_);
        blocks_[block->data()] = {block, size};
        return block->data();
    }
    void fastFree(void* ptr) override {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto at = blocks_.find(ptr);
        if (at == blocks_.end()) abort();
        Guarded<unsigned char>* block = at->second.block;
        size_t i = at->second.size;
        while (i < block->size() && (*block)[i] == kFill) i++;
        if (i < block->size()) damage_++;
        delete block;
        blocks_.erase(at);
    }
    int damage() const { return damage_; }

private:
    enum { kFill = 0xff };
    struct Block {
        Guarded<unsigned char>* block;
        size_t size;
    };
    const bool at_end_;
    std::mutex mutex_;
    std::map<void*, Block> blocks_;
    int damage_ = 0;
};

#endif
