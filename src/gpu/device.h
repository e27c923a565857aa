// A logical device: its functions, queues, memory types and limits.
#ifndef QUOLL_GPU_DEVICE_H
#define QUOLL_GPU_DEVICE_H

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/features.h"
#include "gpu/instance.h"

namespace quoll {

class PipelineStore;
class TuningTable;

// What a block of memory is for; decides its memory type.
enum class MemoryUse {
    kDevice,    // shaders alone read and write it
    kWeights,   // written once: by the host where the device has no memory of its own
    kUpload,    // the host writes, shaders read
    kDownload,  // shaders write, the host reads
};

class GpuDevice {
public:
    // Null after a message.
    static std::shared_ptr<GpuDevice> open(std::shared_ptr<GpuInstance> instance, int index,
                                           GpuPriority priority = GpuPriority::normal);
    ~GpuDevice();

    const DeviceFunctions& vk() const { return vk_; }
    VkDevice handle() const { return device_; }
    const GpuInfo& info() const { return instance_->info(index_); }
    const VkPhysicalDeviceLimits& limits() const { return limits_; }
    const GpuFeatures& features() const { return features_; }
    // Whether a dispatch can begin at another group than 0. NVIDIA's driver (580) begins at 0 all
    // the same: on an H200 every shader then gave wrong answers, with any pipeline flags. On such
    // devices each part has code of its own.
    bool divides_dispatches() const {
        return info().driver_id() != (uint32_t)VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    }
    const unsigned char* cache_uuid() const { return cache_uuid_; }
    uint32_t queue_family() const { return family_.index; }
    const ComputeFamily& compute_family() const { return family_; }
    PipelineStore& pipelines() const { return *pipelines_; }
    TuningTable& tuning() const { return *tuning_; }
    // The alignment of values in a block: what bindings need, and whole vec4s.
    size_t alignment() const;

    // Bytes of the device's own memory that may still be allocated.
    uint64_t memory_budget() const;
    // The same for the heap of a memory type: larger than any number if the driver does not tell,
    // or if the heap is not the device's.
    uint64_t budget_of(int type) const;
    // The memory type for a use among those of `type_bits`; -1: none.
    int memory_type(MemoryUse use, uint32_t type_bits) const;
    bool host_visible(int type) const;
    // Whether memory for a use is the device's own.
    bool is_local(MemoryUse use) const;

    // Submits to one of the queues and waits; before that, waits until fewer than `most`
    // submissions are on the device (0: any number). Returns 0, or a negative code after a message.
    int run(const std::vector<VkCommandBuffer>& commands, VkFence fence, int most = 0) const;
    // Fences for run(), which are not pending when they are given back. NVIDIA's driver (580) takes
    // 0.3 ms to make a fence, and as long to destroy it.
    VkResult take_fence(VkFence* fence) const;
    void give_back_fence(VkFence fence) const;
    // A pool whose command buffers can be recorded again one by one, with the buffers that it has.
    // None of them may be running when it is given back.
    struct Commands {
        VkCommandPool pool = VK_NULL_HANDLE;
        std::vector<VkCommandBuffer> buffers;
    };
    VkResult take_commands(Commands* commands) const;
    void give_back_commands(const Commands& commands) const;
    // The two halves of run(): what was submitted has to be waited for, once, by finish().
    int begin(const std::vector<VkCommandBuffer>& commands, VkFence fence, int most) const;
    int finish(VkFence fence) const;
    // run() for each command buffer by itself, one after the other.
    int run_each(const std::vector<VkCommandBuffer>& commands, VkFence fence, int most) const;
    // A queue for an application alone until it gives it back; waits if all are taken. Null, after
    // a message, if this thread itself has taken all of them.
    VkQueue acquire_queue() const;
    void reclaim_queue(VkQueue queue) const;
    // The number of submissions since the device was opened; and the most that were on it at a time
    // since this was last asked.
    uint64_t submissions() const;
    int highest_in_flight() const;
    // Set when a call has returned VK_ERROR_DEVICE_LOST: nothing runs on the device any more.
    bool lost() const { return lost_; }
    // gpu_error() that also notices a lost device.
    int error(const char* what, VkResult result) const;

private:
    struct Queue;
    // The next queue that no application has taken; null: this thread has taken all of them.
    Queue* free_queue(std::unique_lock<std::mutex>& lock) const;
    VkResult submit(const std::vector<VkCommandBuffer>& commands, VkFence fence) const;
    void wait_for_turn(int most) const;
    void note_submitted(VkFence fence, VkResult result) const;
    void note_ended(VkFence fence) const;
    bool forget_ended() const;
    int in_flight() const { return submitting_ + (int)in_flight_.size(); }
    bool create(const InstanceFunctions& vk, VkPhysicalDevice physical, GpuPriority priority);
    VkResult create_device(const InstanceFunctions& vk, VkPhysicalDevice physical,
                           GpuPriority priority);
    bool has_budgets(VkPhysicalDeviceMemoryBudgetPropertiesEXT* budget) const;
    bool load(const InstanceFunctions& vk);

    std::shared_ptr<GpuInstance> instance_;
    int index_ = 0;
    VkDevice device_ = VK_NULL_HANDLE;
    DeviceFunctions vk_;
    VkPhysicalDeviceLimits limits_;
    VkPhysicalDeviceMemoryProperties memory_;
    GpuFeatures features_;
    unsigned char cache_uuid_[VK_UUID_SIZE] = {};
    ComputeFamily family_;
    std::unique_ptr<Queue[]> queues_;
    mutable std::atomic<uint32_t> next_queue_{0};
    mutable std::mutex taking_;
    mutable std::condition_variable given_back_;
    mutable std::mutex flight_;
    mutable std::condition_variable ended_;
    mutable int submitting_ = 0;  // submissions that are about to be made
    mutable std::vector<VkFence> in_flight_;
    mutable int highest_in_flight_ = 0;
    mutable uint64_t submissions_ = 0;
    mutable std::vector<VkFence> fences_;     // idle; with flight_
    mutable std::vector<Commands> commands_;  // likewise
    mutable std::atomic<bool> lost_{false};
    std::unique_ptr<PipelineStore> pipelines_;
    std::unique_ptr<TuningTable> tuning_;
};

// Of an extension, or of the version of Vulkan that it became part of.
VulkanFunction find_device_function(const GpuDevice& device, const char* name);

}  // namespace quoll

#endif
