// Copies from the host to memory that only the device sees.
#ifndef QUOLL_GPU_STAGING_RING_H
#define QUOLL_GPU_STAGING_RING_H

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/buffer.h"

namespace quoll {

// Staging memory in two halves: the host fills one while the device copies from the other. A half
// grows with what goes through it, up to 32 MB. Functions return 0, or a negative code after a
// message; once a copy has failed, all that follow fail too.
class StagingRing {
public:
    // first_half: bytes that a half has at least.
    StagingRing(const GpuDevice& device, size_t first_half)
        : device_(device), size_(first_half / 2) {}
    ~StagingRing();

    // Writes `bytes` bytes (a multiple of 4) at `offset` of a buffer, which lives until finish().
    // write(to, first, count) puts bytes [first, first + count) there; `first` is a multiple of 16.
    // Waits only if the device has not copied yet what is in the half that is needed.
    typedef std::function<void(unsigned char* to, size_t first, size_t count)> Write;
    int copy(VkBuffer buffer, size_t offset, size_t bytes, const Write& write);
    // Submits what has not been submitted yet, and does not wait.
    int submit();
    // Waits until the device has all, and frees the halves.
    int finish();

private:
    struct Half {
        std::unique_ptr<GpuBuffer> memory;
        size_t used = 0;
        struct Copy {
            VkBuffer to;
            VkBufferCopy range;
        };
        std::vector<Copy> copies;  // that are not submitted yet
        GpuDevice::Commands commands;
        VkFence fence = VK_NULL_HANDLE;
        bool runs = false;  // the device copies from it
    };
    int next_half(size_t bytes);
    int submit(Half* half);
    int wait(Half* half);
    VkResult record(Half* half);

    const GpuDevice& device_;
    std::mutex mutex_;
    Half halves_[2];
    int current_ = 0;
    size_t size_;  // of the half that was made last
    int status_ = 0;
};

}  // namespace quoll

#endif
