#include <algorithm>
#include <mutex>
#include <vector>

#include "gpu/pool_block.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/vkmat.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return ++last;
}

// What shares a buffer, at most a quarter of it. Buffers are as large as all blocks so far, so that
// those who need little memory take little.
const size_t kLeastShared = (size_t)256 << 10, kMostShared = (size_t)16 << 20;

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
    std::vector<std::unique_ptr<SharedBuffer>> shared;
    size_t idle_bytes = 0;
    size_t all_bytes = 0;
    size_t in_use = 0;

    // All with the mutex held.
    void drop(size_t bytes) {
        while (!idle.empty() && idle_bytes > bytes) {
            const std::unique_ptr<PoolBlock> block(idle.front());
            idle.erase(idle.begin());
            idle_bytes -= block->capacity, all_bytes -= block->capacity;
            if (!block->shared) continue;
            block->shared->give_back(block->offset, block->capacity);
            if (block->shared->is_unused())
                shared.erase(std::find_if(shared.begin(), shared.end(), [&](const auto& buffer) {
                    return buffer.get() == block->shared;
                }));
        }
    }
    // False: a buffer of its own is better, or there is no memory for a larger one.
    bool share(size_t size, PoolBlock* block) {
        const size_t buffer = std::min(std::max(all_bytes, kLeastShared), kMostShared);
        block->capacity = (size + gpu->alignment() - 1) / gpu->alignment() * gpu->alignment();
        if (block->capacity > buffer / 4) return false;
        for (const auto& each : shared)
            if (each->take(block->capacity, &block->offset)) return on(each.get(), block);
        const LogMute mute;
        std::unique_ptr<GpuBuffer> memory = GpuBuffer::create(*gpu, use, buffer);
        if (!memory) return false;
        shared.emplace_back(new SharedBuffer(std::move(memory)));
        return shared.back()->take(block->capacity, &block->offset) &&
               on(shared.back().get(), block);
    }
    static bool on(SharedBuffer* buffer, PoolBlock* block) {
        unsigned char* const mapped = buffer->memory().mapped();
        block->shared = buffer, block->buffer = buffer->memory().handle();
        block->mapped_ptr = mapped ? mapped + block->offset : nullptr;
        return true;
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
    mappable = use == kStaging || (use == kWeights && d->gpu->features().unified_memory &&
                                   type >= 0 && d->gpu->host_visible(type));
    coherent = mappable;
    if (type >= 0) buffer_memory_type_index = (uint32_t)type;
}

VkPoolAllocator::~VkPoolAllocator() {
    if (d->in_use) {
        QUOLL_LOGE("Vulkan: an allocator goes while %zu of its blocks are in use", d->in_use);
        new std::shared_ptr<GpuDevice>(d->gpu);  // which need the device
    }
    d->drop(0);
    for (auto& buffer : d->shared) buffer.release();  // whose parts are in use
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
    std::unique_ptr<PoolBlock> block(new PoolBlock);
    bool placed;
    {
        std::lock_guard<std::mutex> lock(d->mutex);
        placed = d->share(with_room(size), block.get());
    }
    if (!placed) {
        block->owner = GpuBuffer::create(*d->gpu, d->use, with_room(size));
        if (!block->owner) return nullptr;
        block->buffer = block->owner->handle();
        block->offset = 0, block->capacity = block->owner->bytes();
        block->mapped_ptr = block->owner->mapped();
    }
    block->refcount = 0;
    block->memory = VK_NULL_HANDLE;
    block->memory_type_index = buffer_memory_type_index;
    block->access_flags = block->stage_flags = 0;
    block->id = next_id();
    std::lock_guard<std::mutex> lock(d->mutex);
    d->in_use++, d->all_bytes += block->capacity;
    return block.release();
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
