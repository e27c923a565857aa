// The Vulkan objects of a Pipeline.
#ifndef QUOLL_GPU_USER_PIPELINE_H
#define QUOLL_GPU_USER_PIPELINE_H

#include <memory>

#include "gpu/device.h"
#include "quoll/pipeline.h"

namespace quoll {

struct Pipeline::Private {
    explicit Private(std::shared_ptr<GpuDevice> on) : device(std::move(on)) {}
    ~Private();
    VkResult create(const std::vector<uint32_t>& words, int bindings, uint32_t subgroup_size,
                    const uint32_t local_size[3],
                    const std::vector<vk_specialization_type>& constants);

    const std::shared_ptr<GpuDevice> device;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkShaderModule module = VK_NULL_HANDLE;

private:
    VkResult create_layouts(int bindings);
};

// main() with constants 0, 1, ... and `more` by their numbers. subgroup_size 0: as the device
// likes.
struct NumberedConstant {
    uint32_t id, value;
};
VkResult make_compute_pipeline(const GpuDevice& device, VkShaderModule module,
                               VkPipelineLayout layout,
                               const std::vector<vk_specialization_type>& constants,
                               const std::vector<NumberedConstant>& more, uint32_t subgroup_size,
                               VkPipelineCache cache, VkPipeline* pipeline);

}  // namespace quoll

#endif
