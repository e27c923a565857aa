// A Vulkan buffer with memory of its own.
#ifndef QUOLL_GPU_BUFFER_H
#define QUOLL_GPU_BUFFER_H

#include <memory>

#include "gpu/device.h"

namespace quoll {

class GpuBuffer {
public:
    // Null, after a message with the sizes, if there is no memory. Buffers of 0 bytes get some.
    static std::unique_ptr<GpuBuffer> create(const GpuDevice& device, MemoryUse use, size_t bytes);
    // Imports memory of the host in place: address and size are multiples of
    // features().host_alignment. Null after a message.
    static std::unique_ptr<GpuBuffer> import(const GpuDevice& device, void* data, size_t bytes);
    ~GpuBuffer();

    VkBuffer handle() const { return buffer_; }
    size_t bytes() const { return bytes_; }
    // The host's address of it; null if the host does not see it.
    unsigned char* mapped() const { return mapped_; }

private:
    explicit GpuBuffer(const GpuDevice& device) : device_(device) {}
    GpuBuffer(const GpuBuffer&) = delete;
    GpuBuffer& operator=(const GpuBuffer&) = delete;
    VkResult allocate(MemoryUse use, size_t bytes);
    VkResult allocate_from(int type, size_t bytes);
    VkResult import(void* data, size_t bytes);
    VkResult create_buffer(size_t bytes, const void* next);
    VkResult bind(const VkMemoryAllocateInfo& memory);

    const GpuDevice& device_;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    size_t bytes_ = 0;
    unsigned char* mapped_ = nullptr;
};

}  // namespace quoll

#endif
