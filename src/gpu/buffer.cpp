#include "gpu/buffer.h"

#include <algorithm>

#include "quoll/log.h"

namespace quoll {

namespace {

const char* use_name(MemoryUse use) {
    switch (use) {
        case MemoryUse::kDevice:
            return "blobs";
        case MemoryUse::kWeights:
            return "weights";
        case MemoryUse::kUpload:
            return "uploads";
        case MemoryUse::kDownload:
            return "downloads";
    }
    return "";
}

}  // namespace

std::unique_ptr<GpuBuffer> GpuBuffer::create(const GpuDevice& device, MemoryUse use, size_t bytes) {
    std::unique_ptr<GpuBuffer> buffer(new GpuBuffer(device));
    const VkResult result = buffer->allocate(use, std::max<size_t>(bytes, 16));
    if (result == VK_SUCCESS) return buffer;
    QUOLL_LOGE("Vulkan: %zu bytes for %s on %s (heap of %llu):", bytes, use_name(use),
               device.info().device_name(), (unsigned long long)device.info().heap_size());
    device.error("allocation", result);
    return nullptr;
}

VkResult GpuBuffer::allocate(MemoryUse use, size_t bytes) {
    const DeviceFunctions& vk = device_.vk();
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    VkResult result = vk.CreateBuffer(device_.handle(), &info, nullptr, &buffer_);
    if (result != VK_SUCCESS) return result;
    VkMemoryRequirements needed;
    vk.GetBufferMemoryRequirements(device_.handle(), buffer_, &needed);
    const int type = device_.memory_type(use, needed.memoryTypeBits);
    if (type < 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    VkMemoryAllocateInfo memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    memory.allocationSize = needed.size, memory.memoryTypeIndex = (uint32_t)type;
    result = vk.AllocateMemory(device_.handle(), &memory, nullptr, &memory_);
    if (result == VK_SUCCESS) result = vk.BindBufferMemory(device_.handle(), buffer_, memory_, 0);
    if (result != VK_SUCCESS) return result;
    bytes_ = bytes;
    if (use == MemoryUse::kDevice || !device_.host_visible(type)) return VK_SUCCESS;
    if (use == MemoryUse::kWeights && device_.info().type() == 0) return VK_SUCCESS;
    void* mapped = nullptr;
    result = vk.MapMemory(device_.handle(), memory_, 0, VK_WHOLE_SIZE, 0, &mapped);
    mapped_ = (unsigned char*)mapped;
    return result;
}

GpuBuffer::~GpuBuffer() {
    if (buffer_) device_.vk().DestroyBuffer(device_.handle(), buffer_, nullptr);
    if (memory_) device_.vk().FreeMemory(device_.handle(), memory_, nullptr);
}

}  // namespace quoll
