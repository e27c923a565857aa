#include "gpu/user_pipeline.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "gpu/pipeline.h"
#include "gpu/spirv.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// More seldom pays: registers and shared memory are divided among a group.
const uint32_t kMostInvocations = 256;

int no_device() {
    QUOLL_LOGE("[Pipeline] there is no device");
    return kError;
}

}  // namespace

void destroy_objects(const GpuDevice& device, const PipelineObjects& o) {
    const DeviceFunctions& vk = device.vk();
    if (o.update) vk.DestroyDescriptorUpdateTemplate(device.handle(), o.update, nullptr);
    if (o.pipeline) vk.DestroyPipeline(device.handle(), o.pipeline, nullptr);
    if (o.module) vk.DestroyShaderModule(device.handle(), o.module, nullptr);
    if (o.layout) vk.DestroyPipelineLayout(device.handle(), o.layout, nullptr);
    if (o.set_layout) vk.DestroyDescriptorSetLayout(device.handle(), o.set_layout, nullptr);
}

static VkResult create_layouts(const GpuDevice& device, int bindings, PipelineObjects* objects) {
    std::vector<VkDescriptorSetLayoutBinding> rows((size_t)bindings);
    for (int i = 0; i < bindings; i++) {
        rows[i].binding = (uint32_t)i;
        rows[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        rows[i].descriptorCount = 1;
        rows[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = (uint32_t)bindings, set.pBindings = rows.data();
    const DeviceFunctions& vk = device.vk();
    const VkResult result =
        vk.CreateDescriptorSetLayout(device.handle(), &set, nullptr, &objects->set_layout);
    if (result != VK_SUCCESS) return result;
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
    VkPipelineLayoutCreateInfo info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    info.setLayoutCount = 1, info.pSetLayouts = &objects->set_layout;
    info.pushConstantRangeCount = 1, info.pPushConstantRanges = &push;
    return vk.CreatePipelineLayout(device.handle(), &info, nullptr, &objects->layout);
}

VkResult create_update_template(const GpuDevice& device, int bindings, VkDescriptorSetLayout set,
                                VkPipelineLayout layout, VkDescriptorUpdateTemplate* made) {
    *made = VK_NULL_HANDLE;
    if (bindings == 0) return VK_SUCCESS;
    std::vector<VkDescriptorUpdateTemplateEntry> entries((size_t)bindings);
    const size_t stride = sizeof(VkDescriptorBufferInfo);
    for (int i = 0; i < bindings; i++)
        entries[i] = {(uint32_t)i,        0,     1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                      (size_t)i * stride, stride};
    VkDescriptorUpdateTemplateCreateInfo all = {
        VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO};
    all.descriptorUpdateEntryCount = (uint32_t)bindings;
    all.pDescriptorUpdateEntries = entries.data();
    all.templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET;
    all.descriptorSetLayout = set, all.pipelineLayout = layout;
    all.pipelineBindPoint = VK_PIPELINE_BIND_POINT_COMPUTE;
    return device.vk().CreateDescriptorUpdateTemplate(device.handle(), &all, nullptr, made);
}

VkResult create_objects(const GpuDevice& device, int bindings,
                        const std::vector<vk_specialization_type>& constants,
                        const std::vector<NumberedConstant>& more, uint32_t subgroup_size,
                        PipelineObjects* objects) {
    VkResult result = create_layouts(device, bindings, objects);
    if (result == VK_SUCCESS)
        result = create_update_template(device, bindings, objects->set_layout, objects->layout,
                                        &objects->update);
    if (result != VK_SUCCESS) return result;
    return make_compute_pipeline(device, objects->module, objects->layout, constants, more,
                                 subgroup_size, VK_NULL_HANDLE, &objects->pipeline);
}

// 0 if there are storage buffers only, and few enough push constants.
static int check_interface(const ShaderInfo& info) {
    for (int i = 0; i < info.binding_count; i++)
        if (info.binding_types[i] == 2) {
            QUOLL_LOGE("[Pipeline] binding %d is no storage buffer", i);
            return kError;
        }
    if (info.push_constant_count * 4 <= kPushBytes) return kOk;
    QUOLL_LOGE("[Pipeline] %d bytes of push constants, expected at most %d",
               info.push_constant_count * 4, kPushBytes);
    return kError;
}

int Pipeline::Private::create(const uint32_t* code, size_t size, const uint32_t local_size[3],
                              uint32_t subgroup_size,
                              const std::vector<vk_specialization_type>& constants,
                              ShaderInfo* info) {
    QUOLL_RETURN_IF_ERROR(resolve_shader_info(code, size, *info));
    QUOLL_RETURN_IF_ERROR(check_interface(*info));
    const std::vector<uint32_t> words = with_local_size(code, size / 4, local_size);
    VkShaderModuleCreateInfo made = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    made.codeSize = words.size() * 4, made.pCode = words.data();
    VkResult result =
        device->vk().CreateShaderModule(device->handle(), &made, nullptr, &created.module);
    std::vector<NumberedConstant> sizes;
    for (uint32_t i = 0; i < 3; i++) sizes.push_back({kFirstSizeId + i, local_size[i]});
    if (result == VK_SUCCESS)
        result =
            create_objects(*device, info->binding_count, constants, sizes, subgroup_size, &created);
    objects = created;
    return result == VK_SUCCESS ? (int)kOk : device->error("a shader of the application", result);
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

VkShaderModule Pipeline::shader_module() const { return d ? d->objects.module : VK_NULL_HANDLE; }
VkDescriptorSetLayout Pipeline::descriptorset_layout() const {
    return d ? d->objects.set_layout : VK_NULL_HANDLE;
}
VkPipelineLayout Pipeline::pipeline_layout() const {
    return d ? d->objects.layout : VK_NULL_HANDLE;
}
VkPipeline Pipeline::pipeline() const { return d ? d->objects.pipeline : VK_NULL_HANDLE; }
VkDescriptorUpdateTemplate Pipeline::descriptor_update_template() const {
    return d ? d->objects.update : VK_NULL_HANDLE;
}

Pipeline::Private* Pipeline::own_handles() {
    if (!d && vkdev && vkdev->is_valid()) d = new Private(vkdev->gpu());
    return d;
}
void Pipeline::set_shader_module(VkShaderModule module) {
    if (own_handles()) d->objects.module = module;
}
void Pipeline::set_descriptorset_layout(VkDescriptorSetLayout set_layout) {
    if (own_handles()) d->objects.set_layout = set_layout;
}
void Pipeline::set_pipeline_layout(VkPipelineLayout layout) {
    if (own_handles()) d->objects.layout = layout;
}
void Pipeline::set_pipeline(VkPipeline pipeline) {
    if (own_handles()) d->objects.pipeline = pipeline;
}
void Pipeline::set_descriptor_update_template(VkDescriptorUpdateTemplate update) {
    if (own_handles()) d->objects.update = update;
}

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
    if (!vkdev || !vkdev->is_valid()) return no_device();
    std::unique_ptr<Private> made(new Private(vkdev->gpu()));
    QUOLL_RETURN_IF_ERROR(made->create(spv_data, spv_data_size, local_size_, subgroup_size_,
                                       specializations, &info_));
    d = made.release();
    return kOk;
}

// ---------------------------------------------------------------- pipelines of a PipelineCache

struct PipelineCache::Private {
    struct Made {
        std::unique_ptr<Pipeline::Private> handles;
        ShaderInfo info;
    };
    std::mutex mutex;
    std::map<std::vector<uint32_t>, Made> made;  // by all that they are made of
};

PipelineCache::PipelineCache(const VulkanDevice* device) : vkdev(device), d(new Private) {}
PipelineCache::~PipelineCache() { delete d; }

void PipelineCache::clear() {
    std::lock_guard<std::mutex> lock(d->mutex);
    d->made.clear();
}

int PipelineCache::get_pipeline(const uint32_t* spv_data, size_t spv_data_size,
                                const std::vector<vk_specialization_type>& constants, uint32_t x,
                                uint32_t y, uint32_t z, uint32_t subgroup_size,
                                VkShaderModule* module, VkDescriptorSetLayout* set_layout,
                                VkPipelineLayout* layout, VkPipeline* pipeline,
                                VkDescriptorUpdateTemplate* update, ShaderInfo& info) const {
    if (!vkdev || !vkdev->is_valid()) return no_device();
    const uint32_t sizes[] = {x, y, z};
    std::vector<uint32_t> key = {x, y, z, subgroup_size, (uint32_t)constants.size()};
    for (const vk_specialization_type& constant : constants) key.push_back(constant.u32);
    key.insert(key.end(), spv_data, spv_data + spv_data_size / 4);
    std::lock_guard<std::mutex> lock(d->mutex);
    Private::Made& made = d->made[key];
    if (!made.handles) {
        std::unique_ptr<Pipeline::Private> handles(new Pipeline::Private(vkdev->gpu()));
        QUOLL_RETURN_IF_ERROR(
            handles->create(spv_data, spv_data_size, sizes, subgroup_size, constants, &made.info));
        made.handles = std::move(handles);
    }
    const PipelineObjects& o = made.handles->objects;
    *module = o.module, *set_layout = o.set_layout, *layout = o.layout, *pipeline = o.pipeline;
    *update = o.update;
    info = made.info;
    return kOk;
}

int PipelineCache::new_pipeline(VkShaderModule module, const ShaderInfo& info,
                                const std::vector<vk_specialization_type>& constants,
                                uint32_t subgroup_size, VkDescriptorSetLayout* set_layout,
                                VkPipelineLayout* layout, VkPipeline* pipeline,
                                VkDescriptorUpdateTemplate* update) const {
    if (!vkdev || !vkdev->is_valid()) return no_device();
    QUOLL_RETURN_IF_ERROR(check_interface(info));
    const GpuDevice& device = *vkdev->gpu();
    PipelineObjects o;
    o.module = module;
    const VkResult result =
        create_objects(device, info.binding_count, constants, {}, subgroup_size, &o);
    if (result != VK_SUCCESS) {
        o.module = VK_NULL_HANDLE;
        destroy_objects(device, o);
        return device.error("a shader of the application", result);
    }
    *set_layout = o.set_layout, *layout = o.layout, *pipeline = o.pipeline, *update = o.update;
    return kOk;
}

}  // namespace quoll
