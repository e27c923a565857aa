#include "gpu/command_list.h"

#include "quoll/status.h"

namespace quoll {

namespace {

const VkPipelineStageFlags kStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
const VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
const VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

void barrier(const DeviceFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags stage,
             VkAccessFlags access) {
    VkMemoryBarrier all = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    all.srcAccessMask = kWrites | kReads, all.dstAccessMask = access;
    vk.CmdPipelineBarrier(commands, kStages, stage, 0, 1, &all, 0, nullptr, 0, nullptr);
}

}  // namespace

CommandList::~CommandList() {
    reset();
    if (fence_) device_->vk().DestroyFence(device_->handle(), fence_, nullptr);
    if (pool_) device_->vk().DestroyCommandPool(device_->handle(), pool_, nullptr);
}

VkResult CommandList::create() {
    if (pool_) return VK_SUCCESS;
    const DeviceFunctions& vk = device_->vk();
    const VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkResult result = VK_SUCCESS;
    if (!fence_) result = vk.CreateFence(device_->handle(), &fence, nullptr, &fence_);
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = device_->queue_family();
    if (result == VK_SUCCESS)
        result = vk.CreateCommandPool(device_->handle(), &pool, nullptr, &pool_);
    return result;
}

VkResult CommandList::open() {
    if (is_open_) return VK_SUCCESS;
    const DeviceFunctions& vk = device_->vk();
    VkResult result = create();
    if (result == VK_SUCCESS && used_ == own_.size()) {
        VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = pool_, allocate.commandBufferCount = 1;
        VkCommandBuffer made = VK_NULL_HANDLE;
        result = vk.AllocateCommandBuffers(device_->handle(), &allocate, &made);
        if (result == VK_SUCCESS) own_.push_back(made);
    }
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    if (result == VK_SUCCESS) result = vk.BeginCommandBuffer(own_[used_], &begin);
    if (result != VK_SUCCESS) return result;
    is_open_ = true;
    order_.push_back(own_[used_++]);
    return VK_SUCCESS;
}

// What comes next sees what it has written, the host included.
VkResult CommandList::close() {
    if (!is_open_) return VK_SUCCESS;
    is_open_ = false;
    const DeviceFunctions& vk = device_->vk();
    barrier(vk, order_.back(), kStages | VK_PIPELINE_STAGE_HOST_BIT,
            kReads | kWrites | VK_ACCESS_HOST_READ_BIT);
    return vk.EndCommandBuffer(order_.back());
}

int CommandList::copy(const std::vector<Copy>& copies) {
    const VkResult result = open();
    if (result != VK_SUCCESS) return device_->error("recording of copies", result);
    const DeviceFunctions& vk = device_->vk();
    barrier(vk, order_.back(), kStages, kReads | kWrites);
    for (const Copy& c : copies) {
        const VkBufferCopy range = {c.from_offset, c.to_offset, c.bytes};
        vk.CmdCopyBuffer(order_.back(), c.from, c.to, 1, &range);
    }
    return kOk;
}

int CommandList::run_recorded(VkCommandBuffer commands) {
    const VkResult result = close();
    if (result != VK_SUCCESS) return device_->error("recording", result);
    order_.push_back(commands);
    return kOk;
}

int CommandList::submit_and_wait() {
    int status = kOk;
    const VkResult result = close();
    if (result != VK_SUCCESS) status = device_->error("recording", result);
    if (status == kOk && !order_.empty()) status = device_->run(order_, fence_);
    for (const std::function<int()>& task : tasks_)
        if (status == kOk) status = task();
    reset();
    return status;
}

void CommandList::reset() {
    if (is_open_) device_->vk().EndCommandBuffer(order_.back());
    is_open_ = false;
    used_ = 0;
    order_.clear();
    tasks_.clear();
    kept_.clear();
}

}  // namespace quoll
