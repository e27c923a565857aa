// Names of Vulkan that public headers mention, declared as <vulkan/vulkan.h> does. A program that
// does more with them than hand them on includes that too.
#ifndef QUOLL_VULKAN_NAMES_H
#define QUOLL_VULKAN_NAMES_H

#include <stdint.h>

// Handles; Vulkan's documentation says what of.
typedef struct VkInstance_T* VkInstance;
typedef struct VkPhysicalDevice_T* VkPhysicalDevice;
typedef struct VkDevice_T* VkDevice;
#if UINTPTR_MAX > 0xffffffffu
// Memory that shaders see.
typedef struct VkBuffer_T* VkBuffer;
#else
// Memory that shaders see.
typedef uint64_t VkBuffer;
#endif
// Bits of a Vk...FlagBits.
typedef uint32_t VkFlags;

struct VkExtensionProperties;
struct VkPhysicalDeviceFeatures;
struct VkPhysicalDeviceProperties;
struct VkPhysicalDeviceMemoryProperties;

#endif
