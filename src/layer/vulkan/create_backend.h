// Creates the Vulkan back end, for code that does not include Vulkan's headers.
#ifndef QUOLL_LAYER_VULKAN_CREATE_BACKEND_H
#define QUOLL_LAYER_VULKAN_CREATE_BACKEND_H

#include <memory>

#include "quoll/backend.h"

namespace quoll {

// For device `index` of quoll/gpu.h; null, after a message, if there is none or the library was
// built without Vulkan. opt: how blobs and weights are stored, as for VulkanBackend::create.
std::shared_ptr<Backend> create_vulkan_backend(int index, const Option& opt);

}  // namespace quoll

#endif
