// Layers of an application that have forward functions on a GPU; defined in layer/vulkan.
#ifndef QUOLL_PLAN_CUSTOM_LAYER_H
#define QUOLL_PLAN_CUSTOM_LAYER_H

#include <vector>

#include "quoll/layer.h"
#include "quoll/vkmat.h"

namespace quoll {

// Whether the layer's own functions for its device are to be called.
inline bool runs_on_device(const Layer& layer) {
#if QUOLL_VULKAN
    return layer.vkdev && layer.support_vulkan && layer.typeindex < 0;
#else
    (void)layer;
    return false;
#endif
}

#if QUOLL_VULKAN
// Records the layer, item by item if it takes no batches. tops has as many VkMats as there are
// outputs. Returns 0, or a negative code after a message.
int record_custom_layer(const Layer& layer, const std::vector<VkMat>& bottoms,
                        std::vector<VkMat>* tops, VkCompute& commands, const Option& opt);
// Uploads the layer's weights.
int upload_custom_layer(Layer& layer, const Option& opt);
#endif

}  // namespace quoll

#endif
