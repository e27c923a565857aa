#include <algorithm>
#include <mutex>
#include <vector>

#include "gpu/pool_block.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/vkmat.h"

namespace quoll {

namespace {

uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return ++last;
}

// Up to an eighth more, so that a blob that grows by a row at a time, as a cache of keys does,
// finds the blocks of the steps before large enough: a new one costs the driver tens of
// microseconds.
size_t with_room(size_t bytes) {
    size_t step = 4;
    while (step * 16 <= bytes) step *= 2;
    return align_size(bytes, step);
}

}  // namespace

struct VkPoolAllocator::Private {
    std::shared_ptr<GpuDevice> gpu;
    MemoryUse use = MemoryUse::kDevice;
    size_t kept_bytes = 0;
    float least_use = 0.5f;  // of a kept block
    std::mutex mutex;
    std::vector<PoolBlock*> idle;  // the one that was used last at the end
    size_t idle_bytes = 0;
    size_t in_use = 0;

    // With the mutex held.
    void drop(size_t bytes) {
        while (!idle.empty() && idle_bytes > bytes) {
            idle_bytes -= idle.front()->capacity;
            delete idle.front();
            idle.erase(idle.begin());
        }
    }
    PoolBlock* take(size_t size) {
        for (size_t i = idle.size(); i-- > 0;) {
            PoolBlock* block = idle[i];
            if (block->capacity < size || (float)block->capacity * least_use > (float)size)
                continue;
            idle.erase(idle.begin() + (std::ptrdiff_t)i);
            idle_bytes -= block->capacity;
            return block;
        }
        return nullptr;
    }
};

VkPoolAllocator::VkPoolAllocator(const VulkanDevice* device, Use use, size_t kept_bytes)
    : VkAllocator(device), d(new Private) {
    const MemoryUse uses[] = {MemoryUse::kDevice, MemoryUse::kWeights, MemoryUse::kDownload};
    d->gpu = device ? device->gpu() : nullptr;
    d->use = uses[use];
    d->kept_bytes = kept_bytes;
    if (!d->gpu) return;
    const int type = d->gpu->memory_type(d->use, ~0u);
    mappable = use == kStaging || (use == kWeights && device->info.type() != 0 && type >= 0 &&
                                   d->gpu->host_visible(type));
    coherent = mappable;
    if (type >= 0) buffer_memory_type_index = (uint32_t)type;
}

VkPoolAllocator::~VkPoolAllocator() {
    if (d->in_use) {
        QUOLL_LOGE("Vulkan: an allocator goes while %zu of its blocks are in use", d->in_use);
        new std::shared_ptr<GpuDevice>(d->gpu);  // which need the device
    }
    d->drop(0);
    delete d;
}

void VkPoolAllocator::set_size_compare_ratio(float ratio) {
    std::lock_guard<std::mutex> lock(d->mutex);
    d->least_use = std::min(std::max(ratio, 0.f), 1.f);
}

void VkPoolAllocator::clear() {
    std::lock_guard<std::mutex> lock(d->mutex);
    d->drop(0);
}

VkBufferMemory* VkPoolAllocator::fastMalloc(size_t size) {
    if (!d->gpu) {
        QUOLL_LOGE("Vulkan: memory of %zu bytes of no device", size);
        return nullptr;
    }
    size = align_size(std::max<size_t>(size, 16), 4);  // as shaders read words
    {
        std::lock_guard<std::mutex> lock(d->mutex);
        if (PoolBlock* block = d->take(size)) {
            d->in_use++;
            return block;
        }
    }
    std::unique_ptr<GpuBuffer> memory = GpuBuffer::create(*d->gpu, d->use, with_room(size));
    if (!memory) return nullptr;
    PoolBlock* block = new PoolBlock;
    block->buffer = memory->handle();
    block->offset = 0, block->capacity = memory->bytes();
    block->mapped_ptr = memory->mapped();
    block->refcount = 0;
    block->memory = VK_NULL_HANDLE;
    block->memory_type_index = buffer_memory_type_index;
    block->access_flags = block->stage_flags = 0;
    block->owner = std::move(memory);
    block->id = next_id();
    std::lock_guard<std::mutex> lock(d->mutex);
    d->in_use++;
    return block;
}

void VkPoolAllocator::fastFree(VkBufferMemory* memory) {
    PoolBlock* block = static_cast<PoolBlock*>(memory);
    std::lock_guard<std::mutex> lock(d->mutex);
    d->in_use--;
    d->idle.push_back(block);
    d->idle_bytes += block->capacity;
    d->drop(d->kept_bytes);
}

}  // namespace quoll
