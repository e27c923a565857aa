#include "gpu/user_pipeline.h"

#include <algorithm>

#include "gpu/pipeline.h"
#include "gpu/spirv.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// More seldom pays: registers and shared memory are divided among a group.
const uint32_t kMostInvocations = 256;

}  // namespace

Pipeline::Private::~Private() {
    const DeviceFunctions& vk = device->vk();
    if (pipeline) vk.DestroyPipeline(device->handle(), pipeline, nullptr);
    if (module) vk.DestroyShaderModule(device->handle(), module, nullptr);
    if (layout) vk.DestroyPipelineLayout(device->handle(), layout, nullptr);
    if (set_layout) vk.DestroyDescriptorSetLayout(device->handle(), set_layout, nullptr);
}

VkResult Pipeline::Private::create_layouts(int bindings) {
    std::vector<VkDescriptorSetLayoutBinding> rows((size_t)bindings);
    for (int i = 0; i < bindings; i++) {
        rows[i].binding = (uint32_t)i;
        rows[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        rows[i].descriptorCount = 1;
        rows[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = (uint32_t)bindings, set.pBindings = rows.data();
    const DeviceFunctions& vk = device->vk();
    const VkResult result =
        vk.CreateDescriptorSetLayout(device->handle(), &set, nullptr, &set_layout);
    if (result != VK_SUCCESS) return result;
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
    VkPipelineLayoutCreateInfo info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    info.setLayoutCount = 1, info.pSetLayouts = &set_layout;
    info.pushConstantRangeCount = 1, info.pPushConstantRanges = &push;
    return vk.CreatePipelineLayout(device->handle(), &info, nullptr, &layout);
}

VkResult Pipeline::Private::create(const std::vector<uint32_t>& words, int bindings,
                                   uint32_t subgroup_size, const uint32_t local_size[3],
                                   const std::vector<vk_specialization_type>& constants) {
    VkResult result = create_layouts(bindings);
    if (result != VK_SUCCESS) return result;
    const DeviceFunctions& vk = device->vk();
    VkShaderModuleCreateInfo code = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    code.codeSize = words.size() * 4, code.pCode = words.data();
    result = vk.CreateShaderModule(device->handle(), &code, nullptr, &module);
    if (result != VK_SUCCESS) return result;
    std::vector<NumberedConstant> sizes;
    for (uint32_t i = 0; i < 3; i++) sizes.push_back({kFirstSizeId + i, local_size[i]});
    return make_compute_pipeline(*device, module, layout, constants, sizes, subgroup_size,
                                 VK_NULL_HANDLE, &pipeline);
}

VkResult make_compute_pipeline(const GpuDevice& device, VkShaderModule module,
                               VkPipelineLayout layout,
                               const std::vector<vk_specialization_type>& constants,
                               const std::vector<NumberedConstant>& more, uint32_t subgroup_size,
                               VkPipelineCache cache, VkPipeline* pipeline) {
    std::vector<uint32_t> values;
    std::vector<VkSpecializationMapEntry> entries;
    const auto add = [&](uint32_t id, uint32_t value) {
        entries.push_back({id, (uint32_t)values.size() * 4, 4});
        values.push_back(value);
    };
    for (uint32_t i = 0; i < constants.size(); i++) add(i, constants[i].u32);
    for (const NumberedConstant& constant : more) add(constant.id, constant.value);
    VkSpecializationInfo special;
    special.mapEntryCount = (uint32_t)entries.size(), special.pMapEntries = entries.data();
    special.dataSize = values.size() * 4, special.pData = values.data();
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    subgroup.requiredSubgroupSize = subgroup_size;
    VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module, info.stage.pName = "main";
    info.stage.pSpecializationInfo = &special;
    // Size control is asked of devices with matrix units only.
    if (subgroup_size && device.features().matrix.m) info.stage.pNext = &subgroup;
    info.layout = layout;
    return device.vk().CreateComputePipelines(device.handle(), cache, 1, &info, nullptr, pipeline);
}

VkShaderModule Pipeline::shader_module() const { return d ? d->module : VK_NULL_HANDLE; }
VkDescriptorSetLayout Pipeline::descriptorset_layout() const {
    return d ? d->set_layout : VK_NULL_HANDLE;
}
VkPipelineLayout Pipeline::pipeline_layout() const { return d ? d->layout : VK_NULL_HANDLE; }
VkPipeline Pipeline::pipeline() const { return d ? d->pipeline : VK_NULL_HANDLE; }

Pipeline::Pipeline(const VulkanDevice* device)
    : vkdev(device), d(nullptr), info_(), local_size_{4, 4, 4}, subgroup_size_(0) {}
Pipeline::~Pipeline() { delete d; }

void Pipeline::set_local_size_xyz(int w, int h, int c) {
    const int sizes[] = {w, h, c};
    for (int i = 0; i < 3; i++) local_size_[i] = (uint32_t)std::max(sizes[i], 1);
}

void Pipeline::set_optimal_local_size_xyz(int w, int h, int c) {
    set_local_size_xyz(w, h, c);
    uint32_t most = kMostInvocations;
    if (vkdev && vkdev->is_valid()) {
        const VkPhysicalDeviceLimits& limits = vkdev->gpu()->limits();
        most = std::min(most, limits.maxComputeWorkGroupInvocations);
        for (int i = 0; i < 3; i++)
            local_size_[i] = std::min(local_size_[i], limits.maxComputeWorkGroupSize[i]);
    }
    while ((uint64_t)local_size_[0] * local_size_[1] * local_size_[2] > most) {
        uint32_t& largest = *std::max_element(local_size_, local_size_ + 3);
        largest = (largest + 1) / 2;
    }
}

void Pipeline::set_subgroup_size(uint32_t size) { subgroup_size_ = size; }

int Pipeline::create(const uint32_t* spv_data, size_t spv_data_size,
                     const std::vector<vk_specialization_type>& specializations) {
    delete d;
    d = nullptr;
    if (!vkdev || !vkdev->is_valid()) {
        QUOLL_LOGE("[Pipeline] there is no device");
        return kError;
    }
    QUOLL_RETURN_IF_ERROR(resolve_shader_info(spv_data, spv_data_size, info_));
    for (int i = 0; i < info_.binding_count; i++)
        if (info_.binding_types[i] == 2) {
            QUOLL_LOGE("[Pipeline] binding %d is no storage buffer", i);
            return kError;
        }
    if (info_.push_constant_count * 4 > kPushBytes) {
        QUOLL_LOGE("[Pipeline] %d bytes of push constants, expected at most %d",
                   info_.push_constant_count * 4, kPushBytes);
        return kError;
    }
    std::unique_ptr<Private> made(new Private(vkdev->gpu()));
    const VkResult result =
        made->create(with_local_size(spv_data, spv_data_size / 4, local_size_), info_.binding_count,
                     subgroup_size_, local_size_, specializations);
    if (result != VK_SUCCESS) return vkdev->gpu()->error("a shader of the application", result);
    d = made.release();
    return kOk;
}

}  // namespace quoll
