#include "quoll/vulkan_functions.h"

#include <string.h>

#include <string>
#include <vector>

#include "gpu/device.h"

namespace quoll {

#define QUOLL_VK_DEFINE(name) PFN_##name name = nullptr;
QUOLL_VULKAN_FUNCTIONS(QUOLL_VK_DEFINE)
#undef QUOLL_VK_DEFINE
// Applications may be built with newer headers than the library.
#define QUOLL_VK_DEFINE(name) PFN_vk##name vk##name = nullptr;
QUOLL_VK_MATRIX_FUNCTIONS(QUOLL_VK_DEFINE)
#undef QUOLL_VK_DEFINE
#if defined(VK_KHR_android_surface)
PFN_vkCreateAndroidSurfaceKHR vkCreateAndroidSurfaceKHR = nullptr;
#endif
#define QUOLL_VK_DEFINE(name) int support_##name = 0;
QUOLL_VULKAN_INSTANCE_EXTENSIONS(QUOLL_VK_DEFINE)
#undef QUOLL_VK_DEFINE

namespace {

// By the core name if an extension has become part of Vulkan.
template <class Get, class Handle>
PFN_vkVoidFunction find(Get get, Handle handle, const char* name) {
    std::string core = name;
    const size_t end = core.size() - 3;
    if (core.compare(end, 3, "KHR") == 0 || core.compare(end, 3, "EXT") == 0) core.resize(end);
    const PFN_vkVoidFunction found = get(handle, core.c_str());
    return found ? found : get(handle, name);
}

}  // namespace

VulkanFunction find_device_function(const GpuDevice& device, const char* name) {
    return {find(vkGetDeviceProcAddr, device.handle(), name)};
}

void publish_vulkan_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance) {
#define QUOLL_VK_LOAD(name) name = (PFN_##name)find(get, instance, #name);
    QUOLL_VULKAN_FUNCTIONS(QUOLL_VK_LOAD)
#undef QUOLL_VK_LOAD
#define QUOLL_VK_LOAD(name) vk##name = (PFN_vk##name)find(get, instance, "vk" #name);
    QUOLL_VK_MATRIX_FUNCTIONS(QUOLL_VK_LOAD)
#undef QUOLL_VK_LOAD
#if defined(VK_KHR_android_surface)
    vkCreateAndroidSurfaceKHR =
        (PFN_vkCreateAndroidSurfaceKHR)find(get, instance, "vkCreateAndroidSurfaceKHR");
#endif
}

void publish_vulkan_extensions(PFN_vkGetInstanceProcAddr get) {
    const auto list = (PFN_vkEnumerateInstanceExtensionProperties)get(
        nullptr, "vkEnumerateInstanceExtensionProperties");
    uint32_t count = 0;
    if (!list || list(nullptr, &count, nullptr) != VK_SUCCESS) return;
    std::vector<VkExtensionProperties> all(count);
    list(nullptr, &count, all.data());
    for (const VkExtensionProperties& extension : all) {
#define QUOLL_VK_LOAD(name) \
    if (!strcmp(extension.extensionName, #name)) support_##name = (int)extension.specVersion;
        QUOLL_VULKAN_INSTANCE_EXTENSIONS(QUOLL_VK_LOAD)
#undef QUOLL_VK_LOAD
    }
}

}  // namespace quoll
