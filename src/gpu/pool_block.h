// A block of the library's own allocators of device memory.
#ifndef QUOLL_GPU_POOL_BLOCK_H
#define QUOLL_GPU_POOL_BLOCK_H

#include <atomic>
#include <memory>

#include "gpu/shared_buffer.h"
#include "quoll/vkmat.h"

namespace quoll {

struct PoolBlock : VkBufferMemory {
    std::unique_ptr<GpuBuffer> owner;  // null: it is a part of
    SharedBuffer* shared = nullptr;    // this
    uint64_t id = 0;                   // no other block has had it, as it may have had its place
    // Rows of each channel that VkMats have, of any length, which share the block as a cache that
    // grows (compiled_region.cpp).
    std::atomic<int> rows{0};
};

}  // namespace quoll

#endif
