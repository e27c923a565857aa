// Layers that map each value by itself: activations.
#include "layer/common/activation.h"
#include "layer/vulkan/valuewise_vulkan.h"

namespace quoll {

int make_unary_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Activation f = layer.as_activation();
    if (f.type != kActivationNone)
        made->reset(new ValuewiseVulkan(Shader::unary, f.type, {f.a, f.b}));
    return kOk;
}

}  // namespace quoll
