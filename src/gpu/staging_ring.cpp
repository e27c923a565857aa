#include "gpu/staging_ring.h"

#include <algorithm>

#include "quoll/mat.h"
#include "quoll/status.h"

namespace quoll {

static const size_t kLargestHalf = (size_t)32 << 20, kAlignment = 16;
// Smaller rings, as those of a region's constants, are filled and finished at once.
static const size_t kNetsFirstHalf = (size_t)1 << 20;

namespace {

// The net's ring that was begun last. Its net may have been loaded and never run, which would
// finish it: nets do not keep staging memory beside each other's.
struct LastRing {
    std::mutex mutex;
    StagingRing* ring = nullptr;
};
LastRing& last_ring() {
    static LastRing* const last = new LastRing;  // never destroyed, as nets may be at exit
    return *last;
}

// If this fails, the other ring's owner is told when it finishes it.
void finish_last_ring(StagingRing* next) {
    LastRing& last = last_ring();
    std::lock_guard<std::mutex> lock(last.mutex);
    if (last.ring) last.ring->finish();
    last.ring = next;
}

}  // namespace

StagingRing::~StagingRing() {
    {
        LastRing& last = last_ring();
        std::lock_guard<std::mutex> lock(last.mutex);
        if (last.ring == this) last.ring = nullptr;
    }
    // Nobody reads what has not been submitted, and to submit it might throw.
    for (Half& half : halves_) half.copies.clear();
    finish();
    for (Half& half : halves_) {
        device_.give_back_fence(half.fence);
        device_.give_back_commands(half.commands);
    }
}

int StagingRing::copy(VkBuffer buffer, size_t offset, size_t bytes, const Write& write) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool is_new = !halves_[1].memory && !halves_[1].fence;
    if (is_new && size_ * 2 >= kNetsFirstHalf) {
        lock.unlock();  // the other thread may be doing the same
        finish_last_ring(this);
        lock.lock();
    }
    for (size_t done = 0; done < bytes && status_ == kOk;) {
        const Half& now = halves_[current_];
        if (!now.memory || now.used == now.memory->bytes()) status_ = next_half(bytes - done);
        if (status_ != kOk) break;
        Half& half = halves_[current_];
        const size_t part = std::min(bytes - done, half.memory->bytes() - half.used);
        write(half.memory->mapped() + half.used, done, part);
        half.copies.push_back({buffer, {half.used, offset + done, part}});
        half.used += align_size(part, kAlignment);
        done += part;
    }
    return status_;
}

// Goes on with the other half, of room for `bytes` bytes if that is not more than it may have.
int StagingRing::next_half(size_t bytes) {
    QUOLL_RETURN_IF_ERROR(submit(&halves_[current_]));
    current_ ^= 1;
    Half& half = halves_[current_];
    QUOLL_RETURN_IF_ERROR(wait(&half));
    const size_t wanted = std::max(align_size(bytes, kAlignment), size_ * 2);
    half.used = 0;
    if (half.memory && half.memory->bytes() >= std::min(wanted, kLargestHalf)) return kOk;
    half.memory.reset();
    size_ = std::min(wanted, kLargestHalf);
    half.memory = GpuBuffer::create(device_, MemoryUse::kUpload, size_);
    return half.memory ? (int)kOk : (int)kOutOfMemory;
}

int StagingRing::submit() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status_ == kOk) status_ = submit(&halves_[current_]);
    return status_;
}

int StagingRing::submit(Half* half) {
    if (half->copies.empty()) return kOk;
    const VkResult result = record(half);
    half->copies.clear();
    if (result != VK_SUCCESS) return device_.error("copy of weights", result);
    QUOLL_RETURN_IF_ERROR(device_.begin({half->commands.buffers[0]}, half->fence, 0));
    half->runs = true;
    // What is in it now can only be replaced once it has been waited for.
    half->used = half->memory->bytes();
    return kOk;
}

int StagingRing::wait(Half* half) {
    if (!half->runs) return kOk;
    half->runs = false;
    return device_.finish(half->fence);
}

int StagingRing::finish() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status_ == kOk) status_ = submit(&halves_[current_]);
    for (Half& half : halves_) {
        const int status = wait(&half);
        if (status_ == kOk) status_ = status;
        half.memory.reset();
        half.copies.clear();
        half.used = 0;
    }
    return status_;
}

VkResult StagingRing::record(Half* half) {
    const DeviceFunctions& vk = device_.vk();
    VkResult result = half->fence ? VK_SUCCESS : device_.take_fence(&half->fence);
    if (result == VK_SUCCESS && !half->commands.pool)
        result = device_.take_commands(&half->commands);
    std::vector<VkCommandBuffer>& buffers = half->commands.buffers;
    if (result == VK_SUCCESS && buffers.empty()) {
        VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = half->commands.pool, allocate.commandBufferCount = 1;
        VkCommandBuffer made = VK_NULL_HANDLE;
        result = vk.AllocateCommandBuffers(device_.handle(), &allocate, &made);
        if (result == VK_SUCCESS) buffers.push_back(made);
    }
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    if (result == VK_SUCCESS) result = vk.BeginCommandBuffer(buffers[0], &begin);
    if (result != VK_SUCCESS) return result;
    for (const Half::Copy& copy : half->copies)
        vk.CmdCopyBuffer(buffers[0], half->memory->handle(), copy.to, 1, &copy.range);
    // Whoever runs later on any queue sees it: a fence makes writes available.
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT;
    vk.CmdPipelineBarrier(buffers[0], VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, nullptr, 0,
                          nullptr);
    return vk.EndCommandBuffer(buffers[0]);
}

}  // namespace quoll
