#include "quoll/vulkan_functions.h"

#include <string.h>

#include <string>
#include <vector>

#include "gpu/instance.h"

namespace quoll {

#define QUOLL_VK_DEFINE(name) PFN_##name name = nullptr;
QUOLL_VULKAN_FUNCTIONS(QUOLL_VK_DEFINE)
QUOLL_VULKAN_MATRIX_FUNCTIONS(QUOLL_VK_DEFINE)
#undef QUOLL_VK_DEFINE
#define QUOLL_VK_DEFINE(name) int support_##name = 0;
QUOLL_VULKAN_INSTANCE_EXTENSIONS(QUOLL_VK_DEFINE)
#undef QUOLL_VK_DEFINE

namespace {

// By the name of Vulkan 1.1 where an extension became part of it.
PFN_vkVoidFunction find(PFN_vkGetInstanceProcAddr get, VkInstance instance, const char* name) {
    std::string core = name;
    const size_t end = core.size() - 3;
    if (core.compare(end, 3, "KHR") == 0) core.resize(end);
    const PFN_vkVoidFunction found = get(instance, core.c_str());
    return found ? found : get(instance, name);
}

}  // namespace

void publish_vulkan_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance) {
#define QUOLL_VK_LOAD(name) name = (PFN_##name)find(get, instance, #name);
    QUOLL_VULKAN_FUNCTIONS(QUOLL_VK_LOAD)
    QUOLL_VULKAN_MATRIX_FUNCTIONS(QUOLL_VK_LOAD)
#undef QUOLL_VK_LOAD
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
