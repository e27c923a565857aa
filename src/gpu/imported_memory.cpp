#include <mutex>

#include "gpu/buffer.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/vkmat.h"

namespace quoll {

struct VkImportedMemory::Private {
    std::shared_ptr<GpuDevice> gpu;
    std::unique_ptr<GpuBuffer> memory;
    VkBufferMemory block = {};
    std::mutex mutex;
    bool in_use = false;
};

size_t VkImportedMemory::alignment(const VulkanDevice* vkdev) {
    const std::shared_ptr<GpuDevice> gpu = vkdev ? vkdev->gpu() : nullptr;
    return gpu && gpu->vk().host_memory_types ? (size_t)gpu->features().host_alignment : 0;
}

VkImportedMemory::VkImportedMemory(const VulkanDevice* device, void* data, size_t size)
    : VkAllocator(device), d(new Private) {
    const size_t aligned = alignment(device);
    if (!aligned) {
        QUOLL_LOGE("Vulkan: %s takes no memory of the host",
                   device ? device->info.device_name() : "no device");
        return;
    }
    if (!data || !size || (uintptr_t)data % aligned || size % aligned) {
        QUOLL_LOGE("Vulkan: %zu bytes of the host at %p: expected multiples of %zu", size, data,
                   aligned);
        return;
    }
    d->gpu = device->gpu();
    d->memory = GpuBuffer::import(*d->gpu, data, size);
    if (!d->memory) return;
    d->block.buffer = d->memory->handle();
    d->block.capacity = size, d->block.mapped_ptr = data;
}

VkImportedMemory::~VkImportedMemory() {
    if (!d->in_use) {
        delete d;
        return;
    }
    QUOLL_LOGE("Vulkan: an allocator goes while %zu of its blocks are in use", (size_t)1);
}

bool VkImportedMemory::is_valid() const { return d->memory != nullptr; }

VkBufferMemory* VkImportedMemory::fastMalloc(size_t size) {
    std::lock_guard<std::mutex> lock(d->mutex);
    if (!d->memory || d->in_use || size > d->block.capacity) {
        QUOLL_LOGE("Vulkan: %zu bytes of the host's %zu, which %s", size, d->block.capacity,
                   !d->memory  ? "the device does not take"
                   : d->in_use ? "another VkMat has"
                               : "are too few");
        return nullptr;
    }
    d->in_use = true;
    d->block.refcount = 0;
    return &d->block;
}

void VkImportedMemory::fastFree(VkBufferMemory*) {
    std::lock_guard<std::mutex> lock(d->mutex);
    d->in_use = false;
}

}  // namespace quoll
