#include "gpu/device.h"
#include "quoll/vkmat.h"

namespace quoll {

struct VulkanDevice::Private {
    explicit Private(std::shared_ptr<GpuDevice> opened) : gpu(std::move(opened)) {}
    const std::shared_ptr<GpuDevice> gpu;
    std::unique_ptr<VkBlobAllocator> blobs;
    std::unique_ptr<VkStagingAllocator> staging;
};

VulkanDevice::VulkanDevice(int index)
    : info(get_gpu_info(index)), index_(index), d(new Private(open_gpu(index))) {
    d->blobs.reset(new VkBlobAllocator(this));
    d->staging.reset(new VkStagingAllocator(this));
}

VulkanDevice::~VulkanDevice() { delete d; }

bool VulkanDevice::is_valid() const { return d->gpu != nullptr; }
VkAllocator* VulkanDevice::acquire_blob_allocator() const { return d->blobs.get(); }
VkAllocator* VulkanDevice::acquire_staging_allocator() const { return d->staging.get(); }
uint32_t VulkanDevice::get_heap_budget() const {
    return d->gpu ? (uint32_t)(d->gpu->memory_budget() >> 20) : 0;
}
std::shared_ptr<GpuDevice> VulkanDevice::gpu() const { return d->gpu; }

}  // namespace quoll
