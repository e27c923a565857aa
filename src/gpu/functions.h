// The functions of Vulkan that the library calls, found at run time.
#ifndef QUOLL_GPU_FUNCTIONS_H
#define QUOLL_GPU_FUNCTIONS_H

#include "gpu/cooperative_matrix.h"

#define QUOLL_VK_INSTANCE_FUNCTIONS(X)        \
    X(DestroyInstance)                        \
    X(EnumeratePhysicalDevices)               \
    X(EnumerateDeviceExtensionProperties)     \
    X(GetPhysicalDeviceProperties2)           \
    X(GetPhysicalDeviceFeatures2)             \
    X(GetPhysicalDeviceMemoryProperties)      \
    X(GetPhysicalDeviceMemoryProperties2)     \
    X(GetPhysicalDeviceQueueFamilyProperties) \
    X(CreateDevice)                           \
    X(GetDeviceProcAddr)

// Null where the loader has none.
#define QUOLL_VK_MATRIX_FUNCTIONS(X)                                    \
    X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)                  \
    X(GetPhysicalDeviceCooperativeMatrixPropertiesNV)                   \
    X(GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV) \
    X(GetPhysicalDeviceCooperativeVectorPropertiesNV)

#define QUOLL_VK_DEVICE_FUNCTIONS(X)  \
    X(DestroyDevice)                  \
    X(GetDeviceQueue)                 \
    X(DeviceWaitIdle)                 \
    X(QueueSubmit)                    \
    X(CreateBuffer)                   \
    X(DestroyBuffer)                  \
    X(GetBufferMemoryRequirements)    \
    X(BindBufferMemory)               \
    X(AllocateMemory)                 \
    X(FreeMemory)                     \
    X(MapMemory)                      \
    X(CreateFence)                    \
    X(DestroyFence)                   \
    X(ResetFences)                    \
    X(WaitForFences)                  \
    X(GetFenceStatus)                 \
    X(CreateCommandPool)              \
    X(DestroyCommandPool)             \
    X(AllocateCommandBuffers)         \
    X(BeginCommandBuffer)             \
    X(EndCommandBuffer)               \
    X(CmdBindPipeline)                \
    X(CmdBindDescriptorSets)          \
    X(CmdPushConstants)               \
    X(CmdDispatch)                    \
    X(CmdDispatchBase)                \
    X(CmdPipelineBarrier)             \
    X(CmdCopyBuffer)                  \
    X(CmdResetQueryPool)              \
    X(CmdWriteTimestamp)              \
    X(CreateQueryPool)                \
    X(DestroyQueryPool)               \
    X(GetQueryPoolResults)            \
    X(CreateDescriptorSetLayout)      \
    X(DestroyDescriptorSetLayout)     \
    X(CreateDescriptorPool)           \
    X(DestroyDescriptorPool)          \
    X(AllocateDescriptorSets)         \
    X(UpdateDescriptorSets)           \
    X(CreatePipelineLayout)           \
    X(DestroyPipelineLayout)          \
    X(CreatePipelineCache)            \
    X(DestroyPipelineCache)           \
    X(GetPipelineCacheData)           \
    X(MergePipelineCaches)            \
    X(CreateShaderModule)             \
    X(DestroyShaderModule)            \
    X(CreateComputePipelines)         \
    X(DestroyPipeline)                \
    X(CreateDescriptorUpdateTemplate) \
    X(DestroyDescriptorUpdateTemplate)

namespace quoll {

#define QUOLL_VK_MEMBER(name) PFN_vk##name name = nullptr;
struct InstanceFunctions {
    QUOLL_VK_INSTANCE_FUNCTIONS(QUOLL_VK_MEMBER)
    QUOLL_VK_MATRIX_FUNCTIONS(QUOLL_VK_MEMBER)
};
struct DeviceFunctions {
    QUOLL_VK_DEVICE_FUNCTIONS(QUOLL_VK_MEMBER)
    // Null where the device takes no memory of the host.
    PFN_vkGetMemoryHostPointerPropertiesEXT host_memory_types = nullptr;
};
#undef QUOLL_VK_MEMBER

// Logs what failed, with the name of the result. Returns kOutOfMemory if that is the reason, else
// kError.
int gpu_error(const char* what, VkResult result);

}  // namespace quoll

#endif
