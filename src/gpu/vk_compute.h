// Common to the sources of VkCompute.
#ifndef QUOLL_GPU_VK_COMPUTE_H
#define QUOLL_GPU_VK_COMPUTE_H

#include "quoll/command.h"
#include "quoll/gpu.h"

namespace quoll {

// `given`, or the device's own where that is null. Null, after a message, for one of another
// device, whose memory this one cannot use.
VkAllocator* or_own(VkAllocator* given, const VulkanDevice& device, bool staging);
// Whether a VkMat is in the memory of `device`; false after a message.
bool is_on(const VkMat& m, const GpuDevice& device, const char* function);
// Shaders of VkMats count bytes and values in words, and see blocks whole: 0, or a negative code
// after a message for more bytes than that can be.
int check_sizes(const GpuDevice& device, size_t bytes, const char* function);
// Says what cannot be recorded and why; a negative code.
int recording_error(const char* what, const char* why);

}  // namespace quoll

#endif
