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
    QUOLL_LOGE("Vulkan: %zu bytes for %s on %s (heap of %llu, of which %llu are left):", bytes,
               use_name(use), device.info().device_name(),
               (unsigned long long)device.info().heap_size(),
               (unsigned long long)device.memory_budget());
    device.error("allocation", result);
    return nullptr;
}

std::unique_ptr<GpuBuffer> GpuBuffer::import(const GpuDevice& device, void* data, size_t bytes) {
    std::unique_ptr<GpuBuffer> buffer(new GpuBuffer(device));
    const VkResult result = buffer->import(data, bytes);
    if (result == VK_SUCCESS) return buffer;
    device.error("import of the host's memory", result);
    return nullptr;
}

VkResult GpuBuffer::create_buffer(size_t bytes, const void* next) {
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.pNext = next, info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    bytes_ = bytes;
    return device_.vk().CreateBuffer(device_.handle(), &info, nullptr, &buffer_);
}

VkResult GpuBuffer::bind(const VkMemoryAllocateInfo& memory) {
    const DeviceFunctions& vk = device_.vk();
    const VkResult result = vk.AllocateMemory(device_.handle(), &memory, nullptr, &memory_);
    if (result != VK_SUCCESS) return result;
    return vk.BindBufferMemory(device_.handle(), buffer_, memory_, 0);
}

VkResult GpuBuffer::import(void* data, size_t bytes) {
    const VkExternalMemoryHandleTypeFlagBits kind =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    const DeviceFunctions& vk = device_.vk();
    VkMemoryHostPointerPropertiesEXT types = {VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    VkResult result = vk.host_memory_types(device_.handle(), kind, data, &types);
    if (result != VK_SUCCESS) return result;
    VkExternalMemoryBufferCreateInfo external = {
        VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
    external.handleTypes = kind;
    result = create_buffer(bytes, &external);
    if (result != VK_SUCCESS) return result;
    VkMemoryRequirements needed;
    vk.GetBufferMemoryRequirements(device_.handle(), buffer_, &needed);
    const int type =
        device_.memory_type(MemoryUse::kDownload, needed.memoryTypeBits & types.memoryTypeBits);
    if (type < 0) return VK_ERROR_FEATURE_NOT_PRESENT;
    VkImportMemoryHostPointerInfoEXT host = {VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
    host.handleType = kind, host.pHostPointer = data;
    VkMemoryAllocateInfo memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &host, 0, 0};
    memory.allocationSize = bytes, memory.memoryTypeIndex = (uint32_t)type;
    mapped_ = (unsigned char*)data;
    return bind(memory);
}

VkResult GpuBuffer::allocate_from(int type, size_t bytes) {
    VkMemoryAllocateInfo memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    memory.allocationSize = bytes, memory.memoryTypeIndex = (uint32_t)type;
    // Memory beyond the budget would evict that of others, or our own, in each run.
    if (bytes > device_.budget_of(type)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return bind(memory);
}

VkResult GpuBuffer::allocate(MemoryUse use, size_t bytes) {
    const DeviceFunctions& vk = device_.vk();
    VkResult result = create_buffer(bytes, nullptr);
    if (result != VK_SUCCESS) return result;
    VkMemoryRequirements needed;
    vk.GetBufferMemoryRequirements(device_.handle(), buffer_, &needed);
    int type = device_.memory_type(use, needed.memoryTypeBits);
    if (type < 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    result = allocate_from(type, needed.size);
    // Of a device's own memory the host may see no more than 256 MB: uploads can lie elsewhere.
    while (result == VK_ERROR_OUT_OF_DEVICE_MEMORY && use == MemoryUse::kUpload && !memory_) {
        needed.memoryTypeBits &= ~(1u << type);
        const int other = device_.memory_type(use, needed.memoryTypeBits);
        if (other < 0) break;
        type = other;
        result = allocate_from(type, needed.size);
    }
    if (result != VK_SUCCESS) return result;
    if (use == MemoryUse::kDevice || !device_.host_visible(type)) return VK_SUCCESS;
    if (use == MemoryUse::kWeights && !device_.features().unified_memory) return VK_SUCCESS;
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
