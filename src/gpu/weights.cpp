#include "gpu/weights.h"

#include <string.h>

#include <algorithm>

#include "quoll/log.h"
#include "quoll/mat.h"
#include "quoll/status.h"

namespace quoll {

namespace {

const size_t kLargeBuffer = (size_t)64 << 20;
const size_t kStaging = (size_t)16 << 20;

// One copy from a staging buffer, recorded and waited for.
class Transfer {
public:
    explicit Transfer(const GpuDevice& device) : device_(device) {}
    ~Transfer() {
        device_.give_back_fence(fence_);
        if (pool_) device_.vk().DestroyCommandPool(device_.handle(), pool_, nullptr);
    }
    int run(const GpuBuffer& from, const GpuBuffer& to, size_t offset, size_t bytes) {
        const VkResult result = record(from, to, offset, bytes);
        if (result != VK_SUCCESS) return device_.error("copy of weights", result);
        return device_.run({commands_}, fence_);
    }

private:
    VkResult record(const GpuBuffer& from, const GpuBuffer& to, size_t offset, size_t bytes) {
        const DeviceFunctions& vk = device_.vk();
        VkResult result = device_.take_fence(&fence_);
        VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        pool.queueFamilyIndex = device_.queue_family();
        if (result == VK_SUCCESS)
            result = vk.CreateCommandPool(device_.handle(), &pool, nullptr, &pool_);
        VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = pool_, allocate.commandBufferCount = 1;
        if (result == VK_SUCCESS)
            result = vk.AllocateCommandBuffers(device_.handle(), &allocate, &commands_);
        VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
        if (result == VK_SUCCESS) result = vk.BeginCommandBuffer(commands_, &begin);
        if (result != VK_SUCCESS) return result;
        const VkBufferCopy copy = {0, offset, bytes};
        vk.CmdCopyBuffer(commands_, from.handle(), to.handle(), 1, &copy);
        // Whoever runs later on any queue sees it: a fence makes writes available.
        VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
        barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
        barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT;
        vk.CmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT,
                              VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, nullptr, 0,
                              nullptr);
        return vk.EndCommandBuffer(commands_);
    }

    const GpuDevice& device_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace

int WeightStore::add(const std::vector<float>& values, Storage storage, Binding* weight) {
    const size_t padded = (values.size() + 3) / 4 * 4;
    if (storage == Storage::f32) {
        std::vector<float> copy = values;
        copy.resize(padded, 0.f);
        return add_bytes(copy.data(), padded * 4, weight);
    }
    std::vector<unsigned short> halves(padded, 0);
    for (size_t i = 0; i < values.size(); i++)
        halves[i] = storage == Storage::f16 ? float32_to_float16(values[i])
                                            : float32_to_bfloat16(values[i]);
    return add_bytes(halves.data(), padded * 2, weight);
}

int WeightStore::add_words(const std::vector<uint32_t>& words, Binding* weight) {
    return add_bytes(words.data(), words.size() * 4, weight);
}

int WeightStore::add_bytes(const void* data, size_t bytes, Binding* weight) {
    QUOLL_RETURN_IF_ERROR(reserve(bytes, weight));
    return copy(data, bytes, *buffers_.back(), weight->offset);
}

int WeightStore::reserve(size_t bytes, Binding* weight) {
    if (bytes > device_.limits().maxStorageBufferRange) {
        QUOLL_LOGW("Vulkan: a weight of %zu bytes, %s takes at most %u: the CPU runs its layer",
                   bytes, device_.info().device_name(), device_.limits().maxStorageBufferRange);
        return kWeightTooLarge;
    }
    const size_t alignment = device_.alignment();
    used_ = (used_ + alignment - 1) / alignment * alignment;
    if (buffers_.empty() || used_ + bytes > buffers_.back()->bytes()) {
        const size_t last = buffers_.empty() ? first_buffer_ / 2 : buffers_.back()->bytes();
        const size_t size = std::max(bytes, std::min(last * 2, kLargeBuffer));
        std::unique_ptr<GpuBuffer> buffer = GpuBuffer::create(device_, MemoryUse::kWeights, size);
        if (!buffer) return kOutOfMemory;
        buffers_.push_back(std::move(buffer));
        used_ = 0;
    }
    weight->where = Binding::kFixed, weight->buffer = buffers_.back()->handle();
    weight->offset = used_, weight->bytes = bytes;
    used_ += bytes, bytes_ += bytes;
    return kOk;
}

int WeightStore::copy(const void* data, size_t bytes, const GpuBuffer& to, size_t offset) const {
    if (to.mapped()) {
        memcpy(to.mapped() + offset, data, bytes);
        return kOk;
    }
    const std::unique_ptr<GpuBuffer> staging =
        GpuBuffer::create(device_, MemoryUse::kUpload, std::min(bytes, kStaging));
    if (!staging) return kOutOfMemory;
    for (size_t done = 0; done < bytes; done += kStaging) {
        const size_t part = std::min(bytes - done, kStaging);
        memcpy(staging->mapped(), (const char*)data + done, part);
        QUOLL_RETURN_IF_ERROR(Transfer(device_).run(*staging, to, offset + done, part));
    }
    return kOk;
}

}  // namespace quoll
