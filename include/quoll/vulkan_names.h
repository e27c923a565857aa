// Names of Vulkan that public headers mention, declared as <vulkan/vulkan.h> declares them. A
// program that does more than pass them on has to include that header, too.
#ifndef QUOLL_VULKAN_NAMES_H
#define QUOLL_VULKAN_NAMES_H

#include <stdint.h>

// Handles; Vulkan's documentation says what of.
typedef struct VkInstance_T* VkInstance;
typedef struct VkPhysicalDevice_T* VkPhysicalDevice;
typedef struct VkDevice_T* VkDevice;
typedef struct VkQueue_T* VkQueue;
// A pointer to a structure, or a number.
#if UINTPTR_MAX > 0xffffffffu
// A handle of a device.
#define QUOLL_VULKAN_HANDLE(name) typedef struct name##_T* name;
#else
// A handle of a device.
#define QUOLL_VULKAN_HANDLE(name) typedef uint64_t name;
#endif
QUOLL_VULKAN_HANDLE(VkBuffer)
QUOLL_VULKAN_HANDLE(VkDeviceMemory)
QUOLL_VULKAN_HANDLE(VkImage)
QUOLL_VULKAN_HANDLE(VkImageView)
QUOLL_VULKAN_HANDLE(VkSampler)
QUOLL_VULKAN_HANDLE(VkShaderModule)
QUOLL_VULKAN_HANDLE(VkDescriptorSetLayout)
QUOLL_VULKAN_HANDLE(VkPipelineLayout)
QUOLL_VULKAN_HANDLE(VkPipeline)
QUOLL_VULKAN_HANDLE(VkPipelineCache)
QUOLL_VULKAN_HANDLE(VkDescriptorUpdateTemplate)
#undef QUOLL_VULKAN_HANDLE
// Bits of a Vk...FlagBits.
typedef uint32_t VkFlags;

struct VkExtensionProperties;
struct VkPhysicalDeviceFeatures;
struct VkPhysicalDeviceProperties;
struct VkPhysicalDeviceMemoryProperties;
struct VkCooperativeMatrixPropertiesKHR;
struct VkCooperativeMatrixPropertiesNV;
struct VkCooperativeMatrixFlexibleDimensionsPropertiesNV;
struct VkCooperativeVectorPropertiesNV;

// Structures by which a device tells of itself: the name of GpuInfo's question, Vulkan's name, its
// VkStructureType, the minor version of Vulkan 1 that has it (0: none), else the extension.
#define QUOLL_VULKAN_FEATURES(X)                                                                   \
    X(query8BitStorageFeatures, VkPhysicalDevice8BitStorageFeatures, 1000177000, 2,                \
      "VK_KHR_8bit_storage")                                                                       \
    X(query16BitStorageFeatures, VkPhysicalDevice16BitStorageFeatures, 1000083000, 1, "")          \
    X(queryFloat16Int8Features, VkPhysicalDeviceShaderFloat16Int8Features, 1000082000, 2,          \
      "VK_KHR_shader_float16_int8")                                                                \
    X(querySamplerYcbcrConversionFeatures, VkPhysicalDeviceSamplerYcbcrConversionFeatures,         \
      1000156004, 1, "")                                                                           \
    X(queryCooperativeMatrixFeatures, VkPhysicalDeviceCooperativeMatrixFeaturesKHR, 1000506000, 0, \
      "VK_KHR_cooperative_matrix")                                                                 \
    X(queryCooperativeMatrixFeaturesNV, VkPhysicalDeviceCooperativeMatrixFeaturesNV, 1000249000,   \
      0, "VK_NV_cooperative_matrix")                                                               \
    X(queryCooperativeMatrix2FeaturesNV, VkPhysicalDeviceCooperativeMatrix2FeaturesNV, 1000593000, \
      0, "VK_NV_cooperative_matrix2")                                                              \
    X(queryCooperativeVectorFeaturesNV, VkPhysicalDeviceCooperativeVectorFeaturesNV, 1000491000,   \
      0, "VK_NV_cooperative_vector")                                                               \
    X(queryRobustness2Features, VkPhysicalDeviceRobustness2FeaturesKHR, 1000286000, 0,             \
      "VK_EXT_robustness2")                                                                        \
    X(querySubgroupSizeControlFeatures, VkPhysicalDeviceSubgroupSizeControlFeatures, 1000225002,   \
      3, "VK_EXT_subgroup_size_control")                                                           \
    X(queryShaderBfloat16Features, VkPhysicalDeviceShaderBfloat16FeaturesKHR, 1000141000, 0,       \
      "VK_KHR_shader_bfloat16")                                                                    \
    X(queryShaderFloat8Features, VkPhysicalDeviceShaderFloat8FeaturesEXT, 1000567000, 0,           \
      "VK_EXT_shader_float8")                                                                      \
    X(queryShaderFloatControls2Features, VkPhysicalDeviceShaderFloatControls2Features, 1000528000, \
      4, "VK_KHR_shader_float_controls2")                                                          \
    X(queryShaderIntegerDotProductFeatures, VkPhysicalDeviceShaderIntegerDotProductFeatures,       \
      1000280000, 3, "VK_KHR_shader_integer_dot_product")                                          \
    X(queryShaderSubgroupExtendedTypesFeatures,                                                    \
      VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures, 1000175000, 2,                          \
      "VK_KHR_shader_subgroup_extended_types")                                                     \
    X(queryShaderSubgroupRotateFeatures, VkPhysicalDeviceShaderSubgroupRotateFeatures, 1000416000, \
      4, "VK_KHR_shader_subgroup_rotate")                                                          \
    X(queryShaderAtomicFloatFeatures, VkPhysicalDeviceShaderAtomicFloatFeaturesEXT, 1000260000, 0, \
      "VK_EXT_shader_atomic_float")                                                                \
    X(queryShaderAtomicFloat2Features, VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT, 1000273000,  \
      0, "VK_EXT_shader_atomic_float2")                                                            \
    X(queryVulkanMemoryModelFeatures, VkPhysicalDeviceVulkanMemoryModelFeatures, 1000211000, 2,    \
      "VK_KHR_vulkan_memory_model")
#define QUOLL_VULKAN_PROPERTIES(X)                                                               \
    X(queryCooperativeMatrix2PropertiesNV, VkPhysicalDeviceCooperativeMatrix2PropertiesNV,       \
      1000593002, 0, "VK_NV_cooperative_matrix2")                                                \
    X(queryCooperativeVectorPropertiesNV, VkPhysicalDeviceCooperativeVectorPropertiesNV,         \
      1000491001, 0, "VK_NV_cooperative_vector")                                                 \
    X(queryDriverProperties, VkPhysicalDeviceDriverProperties, 1000196000, 2,                    \
      "VK_KHR_driver_properties")                                                                \
    X(queryFloatControlsProperties, VkPhysicalDeviceFloatControlsProperties, 1000197000, 2,      \
      "VK_KHR_shader_float_controls")                                                            \
    X(queryRobustness2Properties, VkPhysicalDeviceRobustness2PropertiesKHR, 1000286001, 0,       \
      "VK_EXT_robustness2")                                                                      \
    X(queryShaderIntegerDotProductProperties, VkPhysicalDeviceShaderIntegerDotProductProperties, \
      1000280001, 3, "VK_KHR_shader_integer_dot_product")                                        \
    X(querySubgroupProperties, VkPhysicalDeviceSubgroupProperties, 1000094000, 1, "")            \
    X(querySubgroupSizeControlProperties, VkPhysicalDeviceSubgroupSizeControlProperties,         \
      1000225000, 3, "VK_EXT_subgroup_size_control")                                             \
    X(queryExternalMemoryHostProperties, VkPhysicalDeviceExternalMemoryHostPropertiesEXT,        \
      1000178002, 0, "VK_EXT_external_memory_host")
#define QUOLL_VULKAN_STRUCT(question, name, ...) struct name;
QUOLL_VULKAN_FEATURES(QUOLL_VULKAN_STRUCT)
QUOLL_VULKAN_PROPERTIES(QUOLL_VULKAN_STRUCT)
#undef QUOLL_VULKAN_STRUCT

// Functions of extensions, of which VulkanDevice has a member each.
#define QUOLL_VULKAN_EXTENSION_FUNCTIONS(X)     \
    X(vkBindBufferMemory2KHR)                   \
    X(vkBindImageMemory2KHR)                    \
    X(vkGetBufferDeviceAddressKHR)              \
    X(vkGetBufferOpaqueCaptureAddressKHR)       \
    X(vkGetDeviceMemoryOpaqueCaptureAddressKHR) \
    X(vkCreateDescriptorUpdateTemplateKHR)      \
    X(vkDestroyDescriptorUpdateTemplateKHR)     \
    X(vkUpdateDescriptorSetWithTemplateKHR)     \
    X(vkGetImageMemoryRequirements2KHR)         \
    X(vkGetBufferMemoryRequirements2KHR)        \
    X(vkTrimCommandPoolKHR)                     \
    X(vkGetDescriptorSetLayoutSupportKHR)       \
    X(vkCmdPushDescriptorSetWithTemplateKHR)    \
    X(vkCmdPushDescriptorSetKHR)                \
    X(vkCreateSamplerYcbcrConversionKHR)        \
    X(vkDestroySamplerYcbcrConversionKHR)       \
    X(vkCreateSwapchainKHR)                     \
    X(vkDestroySwapchainKHR)                    \
    X(vkGetSwapchainImagesKHR)                  \
    X(vkAcquireNextImageKHR)                    \
    X(vkQueuePresentKHR)                        \
    X(vkGetBufferDeviceAddressEXT)              \
    X(vkGetMemoryHostPointerPropertiesEXT)
#define QUOLL_VULKAN_VECTOR_FUNCTIONS(X)     \
    X(vkCmdConvertCooperativeVectorMatrixNV) \
    X(vkConvertCooperativeVectorMatrixNV)
#define QUOLL_VULKAN_ANDROID_FUNCTIONS(X)          \
    X(vkGetAndroidHardwareBufferPropertiesANDROID) \
    X(vkGetMemoryAndroidHardwareBufferANDROID)
#define QUOLL_VULKAN_DEVICE_FUNCTIONS(X) \
    QUOLL_VULKAN_EXTENSION_FUNCTIONS(X)  \
    QUOLL_VULKAN_VECTOR_FUNCTIONS(X)     \
    QUOLL_VULKAN_ANDROID_FUNCTIONS(X)

namespace quoll {

// Where a function is; null: the device has none. The classes of the members are declared here and
// become callable with quoll/vulkan_functions.h, which knows Vulkan's types.
struct VulkanFunction {
    // To be cast to the function's type.
    void (*address)();
};
#define QUOLL_VULKAN_FUNCTION(name) struct name##_function;
QUOLL_VULKAN_DEVICE_FUNCTIONS(QUOLL_VULKAN_FUNCTION)
#undef QUOLL_VULKAN_FUNCTION

}  // namespace quoll

#endif
