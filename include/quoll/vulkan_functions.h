// Vulkan's functions by their names, for programs written for ncnn that call them.
// create_gpu_instance(), or whatever first asks for a device, sets them. Empty if Vulkan's headers
// are not installed, or if the library was built without QUOLL_VULKAN.
#ifndef QUOLL_VULKAN_FUNCTIONS_H
#define QUOLL_VULKAN_FUNCTIONS_H

#include "quoll/platform.h"
#include "quoll/vulkan_names.h"

#if QUOLL_VULKAN && defined(__has_include)
#if __has_include(<vulkan/vulkan.h>)
#define QUOLL_HAS_VULKAN_FUNCTIONS 1
#endif
#endif

#if QUOLL_HAS_VULKAN_FUNCTIONS

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#if __ANDROID_API__ >= 26 && !defined(VK_USE_PLATFORM_ANDROID_KHR)
#define VK_USE_PLATFORM_ANDROID_KHR
#endif
#include <vulkan/vulkan.h>

// Of Vulkan 1.0 and of extensions that are older than 1.1.
#define QUOLL_VULKAN_FUNCTIONS(X)                     \
    X(vkAllocateCommandBuffers)                       \
    X(vkAllocateDescriptorSets)                       \
    X(vkAllocateMemory)                               \
    X(vkBeginCommandBuffer)                           \
    X(vkBindBufferMemory)                             \
    X(vkBindImageMemory)                              \
    X(vkCmdBeginQuery)                                \
    X(vkCmdBindDescriptorSets)                        \
    X(vkCmdBindIndexBuffer)                           \
    X(vkCmdBindPipeline)                              \
    X(vkCmdCopyBuffer)                                \
    X(vkCmdCopyBufferToImage)                         \
    X(vkCmdCopyImage)                                 \
    X(vkCmdCopyImageToBuffer)                         \
    X(vkCmdCopyQueryPoolResults)                      \
    X(vkCmdDispatch)                                  \
    X(vkCmdDispatchIndirect)                          \
    X(vkCmdEndQuery)                                  \
    X(vkCmdExecuteCommands)                           \
    X(vkCmdFillBuffer)                                \
    X(vkCmdPipelineBarrier)                           \
    X(vkCmdPushConstants)                             \
    X(vkCmdResetQueryPool)                            \
    X(vkCmdResolveImage)                              \
    X(vkCmdUpdateBuffer)                              \
    X(vkCmdWriteTimestamp)                            \
    X(vkCreateBuffer)                                 \
    X(vkCreateBufferView)                             \
    X(vkCreateCommandPool)                            \
    X(vkCreateComputePipelines)                       \
    X(vkCreateDescriptorPool)                         \
    X(vkCreateDescriptorSetLayout)                    \
    X(vkCreateDevice)                                 \
    X(vkCreateFence)                                  \
    X(vkCreateImage)                                  \
    X(vkCreateImageView)                              \
    X(vkCreatePipelineCache)                          \
    X(vkCreatePipelineLayout)                         \
    X(vkCreateQueryPool)                              \
    X(vkCreateSampler)                                \
    X(vkCreateSemaphore)                              \
    X(vkCreateShaderModule)                           \
    X(vkDestroyBuffer)                                \
    X(vkDestroyBufferView)                            \
    X(vkDestroyCommandPool)                           \
    X(vkDestroyDescriptorPool)                        \
    X(vkDestroyDescriptorSetLayout)                   \
    X(vkDestroyDevice)                                \
    X(vkDestroyFence)                                 \
    X(vkDestroyImage)                                 \
    X(vkDestroyImageView)                             \
    X(vkDestroyInstance)                              \
    X(vkDestroyPipeline)                              \
    X(vkDestroyPipelineCache)                         \
    X(vkDestroyPipelineLayout)                        \
    X(vkDestroyQueryPool)                             \
    X(vkDestroySampler)                               \
    X(vkDestroySemaphore)                             \
    X(vkDestroyShaderModule)                          \
    X(vkDestroySurfaceKHR)                            \
    X(vkDeviceWaitIdle)                               \
    X(vkEndCommandBuffer)                             \
    X(vkEnumerateDeviceExtensionProperties)           \
    X(vkEnumerateDeviceLayerProperties)               \
    X(vkEnumeratePhysicalDevices)                     \
    X(vkFlushMappedMemoryRanges)                      \
    X(vkFreeCommandBuffers)                           \
    X(vkFreeDescriptorSets)                           \
    X(vkFreeMemory)                                   \
    X(vkGetBufferMemoryRequirements)                  \
    X(vkGetDeviceMemoryCommitment)                    \
    X(vkGetDeviceProcAddr)                            \
    X(vkGetDeviceQueue)                               \
    X(vkGetFenceStatus)                               \
    X(vkGetImageMemoryRequirements)                   \
    X(vkGetImageSubresourceLayout)                    \
    X(vkGetPhysicalDeviceExternalBufferPropertiesKHR) \
    X(vkGetPhysicalDeviceFeatures)                    \
    X(vkGetPhysicalDeviceFeatures2KHR)                \
    X(vkGetPhysicalDeviceFormatProperties)            \
    X(vkGetPhysicalDeviceFormatProperties2KHR)        \
    X(vkGetPhysicalDeviceImageFormatProperties)       \
    X(vkGetPhysicalDeviceImageFormatProperties2KHR)   \
    X(vkGetPhysicalDeviceMemoryProperties)            \
    X(vkGetPhysicalDeviceMemoryProperties2KHR)        \
    X(vkGetPhysicalDeviceProperties)                  \
    X(vkGetPhysicalDeviceProperties2KHR)              \
    X(vkGetPhysicalDeviceQueueFamilyProperties)       \
    X(vkGetPhysicalDeviceQueueFamilyProperties2KHR)   \
    X(vkGetPhysicalDeviceSurfaceCapabilities2KHR)     \
    X(vkGetPhysicalDeviceSurfaceCapabilitiesKHR)      \
    X(vkGetPhysicalDeviceSurfaceFormats2KHR)          \
    X(vkGetPhysicalDeviceSurfaceFormatsKHR)           \
    X(vkGetPhysicalDeviceSurfacePresentModesKHR)      \
    X(vkGetPhysicalDeviceSurfaceSupportKHR)           \
    X(vkGetPipelineCacheData)                         \
    X(vkGetQueryPoolResults)                          \
    X(vkInvalidateMappedMemoryRanges)                 \
    X(vkMapMemory)                                    \
    X(vkMergePipelineCaches)                          \
    X(vkQueueSubmit)                                  \
    X(vkQueueWaitIdle)                                \
    X(vkResetCommandBuffer)                           \
    X(vkResetCommandPool)                             \
    X(vkResetDescriptorPool)                          \
    X(vkResetFences)                                  \
    X(vkUnmapMemory)                                  \
    X(vkUpdateDescriptorSets)                         \
    X(vkWaitForFences)

// Extensions of instances.
#define QUOLL_VULKAN_INSTANCE_EXTENSIONS(X)   \
    X(VK_KHR_external_memory_capabilities)    \
    X(VK_KHR_device_group_creation)           \
    X(VK_KHR_get_physical_device_properties2) \
    X(VK_KHR_get_surface_capabilities2)       \
    X(VK_KHR_surface)                         \
    X(VK_EXT_debug_utils)                     \
    X(VK_EXT_validation_features)             \
    X(VK_EXT_validation_flags)                \
    X(VK_KHR_android_surface)

namespace quoll {

// Null where the loader has none.
#define QUOLL_VULKAN_FUNCTION(name) extern PFN_##name name;
QUOLL_VULKAN_FUNCTIONS(QUOLL_VULKAN_FUNCTION)
// Of extensions that old headers lack.
#ifdef VK_KHR_cooperative_matrix
QUOLL_VULKAN_FUNCTION(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)
#endif
#ifdef VK_NV_cooperative_matrix
QUOLL_VULKAN_FUNCTION(vkGetPhysicalDeviceCooperativeMatrixPropertiesNV)
#endif
#ifdef VK_NV_cooperative_matrix2
QUOLL_VULKAN_FUNCTION(vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV)
#endif
#ifdef VK_NV_cooperative_vector
QUOLL_VULKAN_FUNCTION(vkGetPhysicalDeviceCooperativeVectorPropertiesNV)
#endif
#ifdef VK_KHR_android_surface
QUOLL_VULKAN_FUNCTION(vkCreateAndroidSurfaceKHR)
#endif
#undef QUOLL_VULKAN_FUNCTION
// Their versions, 0 where the loader lacks one.
#define QUOLL_VULKAN_EXTENSION(name) extern int support_##name;
QUOLL_VULKAN_INSTANCE_EXTENSIONS(QUOLL_VULKAN_EXTENSION)
#undef QUOLL_VULKAN_EXTENSION

// VulkanDevice's members: called, compared with null and assigned as the pointers that they are
// converted to.
#define QUOLL_VULKAN_FUNCTION(name)                                 \
    struct name##_function : VulkanFunction {                       \
        operator PFN_##name() const { return (PFN_##name)address; } \
    };
QUOLL_VULKAN_EXTENSION_FUNCTIONS(QUOLL_VULKAN_FUNCTION)
#ifdef VK_NV_cooperative_vector
QUOLL_VULKAN_VECTOR_FUNCTIONS(QUOLL_VULKAN_FUNCTION)
#endif
#ifdef VK_ANDROID_external_memory_android_hardware_buffer
QUOLL_VULKAN_ANDROID_FUNCTIONS(QUOLL_VULKAN_FUNCTION)
#endif
#undef QUOLL_VULKAN_FUNCTION

}  // namespace quoll

#endif
#endif
