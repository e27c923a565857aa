// Pipeline: a compute shader of an application, for VkCompute::record_pipeline. It is made from
// SPIR-V, to which quoll/glsl.h compiles GLSL.
#ifndef QUOLL_PIPELINE_H
#define QUOLL_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "quoll/command.h"
#include "quoll/platform.h"

namespace quoll {

// A specialisation constant.
union vk_specialization_type {
    int i;
    float f;
    uint32_t u32;
};

// The interface that the SPIR-V declares.
struct ShaderInfo {
    int specialization_count;  // constants 0, 1, ...
    int binding_count;         // bindings 0, 1, ... of set 0
    int push_constant_count;   // words
    int binding_types[16];     // 0: none, 1: storage buffer, 2: anything else
    int reserved_0, reserved_1, reserved_2, reserved_3;  // 0
};
// 0, or a negative code after a message. spv_data_size: bytes.
int resolve_shader_info(const uint32_t* spv_data, size_t spv_data_size, ShaderInfo& info);

class Pipeline {
public:
    explicit Pipeline(const VulkanDevice* vkdev);
    virtual ~Pipeline();

    // Invocations of a group, whatever the shader says; 4 x 4 x 4 by default. To be set before
    // create(). The optimal form takes the sizes of what is to be computed, and makes a group that
    // fits the device.
    void set_local_size_xyz(int w, int h, int c);
    void set_optimal_local_size_xyz(int w = 4, int h = 4, int c = 4);
    void set_optimal_local_size_xyz(const Mat& sizes) {
        set_optimal_local_size_xyz(sizes.w, sizes.h * sizes.d, sizes.c);
    }
    // Invocations of a subgroup, if the device lets them be chosen; 0: the device chooses.
    void set_subgroup_size(uint32_t size);
    // Makes the pipeline from the shader's main(). spv_data_size: bytes. At most 16 storage
    // buffers, nothing else, and 128 bytes of push constants. Returns 0, or a negative code after a
    // message.
    int create(const uint32_t* spv_data, size_t spv_data_size,
               const std::vector<vk_specialization_type>& specializations);

    const ShaderInfo& shader_info() const { return info_; }
    uint32_t local_size_x() const { return local_size_[0]; }
    uint32_t local_size_y() const { return local_size_[1]; }
    uint32_t local_size_z() const { return local_size_[2]; }

#if QUOLL_VULKAN
    // Vulkan's own; null before create().
    VkShaderModule shader_module() const;
    VkDescriptorSetLayout descriptorset_layout() const;
    VkPipelineLayout pipeline_layout() const;
    VkPipeline pipeline() const;
    VkDescriptorUpdateTemplate descriptor_update_template() const;  // null without bindings
#endif

    const VulkanDevice* vkdev;

    // For the library; null before create().
    struct Private;
    Private* handles() const { return d; }

protected:
#if QUOLL_VULKAN
    // Objects that a derived class made, and destroys, instead of those of create(). To be
    // recorded, a pipeline needs its layouts and its info, too.
    void set_shader_module(VkShaderModule shader_module);
    void set_descriptorset_layout(VkDescriptorSetLayout descriptorset_layout);
    void set_pipeline_layout(VkPipelineLayout pipeline_layout);
    void set_pipeline(VkPipeline pipeline);
    void set_descriptor_update_template(VkDescriptorUpdateTemplate descriptor_update_template);
#endif
    // Bindings, push constants and specializations of its shader.
    void set_shader_info(const ShaderInfo& shader_info) { info_ = shader_info; }

private:
#if QUOLL_VULKAN
    Private* own_handles();
#endif
    Pipeline(const Pipeline&);
    Pipeline& operator=(const Pipeline&);
    Private* d;
    ShaderInfo info_;
    uint32_t local_size_[3];
    uint32_t subgroup_size_;
};

}  // namespace quoll

#endif
