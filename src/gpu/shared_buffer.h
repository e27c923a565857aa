// A buffer of the device that several blocks of an allocator share: drivers allow some thousands of
// allocations, and small ones cost as much time, and often as much memory, as large ones.
#ifndef QUOLL_GPU_SHARED_BUFFER_H
#define QUOLL_GPU_SHARED_BUFFER_H

#include <iterator>
#include <map>
#include <memory>

#include "gpu/buffer.h"

namespace quoll {

// For one thread at a time.
class SharedBuffer {
public:
    explicit SharedBuffer(std::unique_ptr<GpuBuffer> memory) : memory_(std::move(memory)) {
        free_[0] = memory_->bytes();
    }
    const GpuBuffer& memory() const { return *memory_; }
    // Takes the first free range of `bytes` bytes; false if there is none. If all sizes are
    // multiples of an alignment, all offsets are.
    bool take(size_t bytes, size_t* offset) {
        for (auto range = free_.begin(); range != free_.end(); ++range) {
            if (range->second < bytes) continue;
            *offset = range->first;
            const size_t left = range->second - bytes;
            free_.erase(range);
            if (left) free_[*offset + bytes] = left;
            return true;
        }
        return false;
    }
    void give_back(size_t offset, size_t bytes) {
        auto range = free_.emplace(offset, bytes).first;
        const auto behind = std::next(range);
        if (behind != free_.end() && offset + bytes == behind->first) {
            range->second += behind->second;
            free_.erase(behind);
        }
        if (range == free_.begin()) return;
        const auto before = std::prev(range);
        if (before->first + before->second != offset) return;
        before->second += range->second;
        free_.erase(range);
    }
    bool is_unused() const {
        return free_.size() == 1 && free_.begin()->second == memory_->bytes();
    }

private:
    const std::unique_ptr<GpuBuffer> memory_;
    std::map<size_t, size_t> free_;  // bytes by offset; no two ranges touch
};

}  // namespace quoll

#endif
