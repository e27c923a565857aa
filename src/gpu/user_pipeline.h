// The Vulkan objects of a Pipeline.
#ifndef QUOLL_GPU_USER_PIPELINE_H
#define QUOLL_GPU_USER_PIPELINE_H

#include <memory>

#include "gpu/device.h"
#include "quoll/pipeline.h"

namespace quoll {

struct NumberedConstant {
    uint32_t id, value;
};
struct PipelineObjects {
    VkShaderModule module = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkDescriptorUpdateTemplate update = VK_NULL_HANDLE;
};

// Everything but the module; layouts for storage buffers and kPushBytes of constants.
VkResult create_objects(const GpuDevice& device, int bindings,
                        const std::vector<vk_specialization_type>& constants,
                        const std::vector<NumberedConstant>& more, uint32_t subgroup_size,
                        PipelineObjects* objects);
void destroy_objects(const GpuDevice& device, const PipelineObjects& objects);
// Null without bindings.
VkResult create_update_template(const GpuDevice& device, int bindings, VkDescriptorSetLayout set,
                                VkPipelineLayout layout, VkDescriptorUpdateTemplate* made);

struct Pipeline::Private {
    explicit Private(std::shared_ptr<GpuDevice> on) : device(std::move(on)) {}
    ~Private() { destroy_objects(*device, created); }
    // 0, or a negative code after a message. size: bytes of SPIR-V.
    int create(const uint32_t* code, size_t size, const uint32_t local_size[3],
               uint32_t subgroup_size, const std::vector<vk_specialization_type>& constants,
               ShaderInfo* info);

    const std::shared_ptr<GpuDevice> device;
    PipelineObjects objects;  // some of which a derived class may have set
    PipelineObjects created;
};

// main() with constants 0, 1, ... and `more` by their numbers. subgroup_size 0: as the device
// likes.
VkResult make_compute_pipeline(const GpuDevice& device, VkShaderModule module,
                               VkPipelineLayout layout,
                               const std::vector<vk_specialization_type>& constants,
                               const std::vector<NumberedConstant>& more, uint32_t subgroup_size,
                               VkPipelineCache cache, VkPipeline* pipeline);

}  // namespace quoll

#endif
