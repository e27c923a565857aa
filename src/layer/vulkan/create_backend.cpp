#include "layer/vulkan/create_backend.h"

#if QUOLL_VULKAN
#include "layer/vulkan/vulkan_backend.h"
#else
#include "quoll/log.h"
#endif

namespace quoll {

#if QUOLL_VULKAN

std::shared_ptr<Backend> create_vulkan_backend(int index, const Option& opt) {
    return VulkanBackend::create(index, opt);
}

#else

std::shared_ptr<Backend> create_vulkan_backend(int, const Option&) {
    QUOLL_LOGE("Vulkan: this library was built without QUOLL_VULKAN");
    return nullptr;
}

#endif

}  // namespace quoll
