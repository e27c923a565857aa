// Vulkan's own objects for applications that call Vulkan themselves: what VulkanDevice, Pipeline
// and VkAllocator give of them.
#include <vector>

#include "gpu/command_list.h"
#include "gpu/device.h"
#include "gpu/spirv.h"
#include "gpu/user_pipeline.h"
#include "quoll/command.h"
#include "quoll/log.h"
#include "quoll/pipeline.h"
#include "quoll/status.h"
#include "quoll/vulkan_functions.h"

namespace quoll {

namespace {

// Of ShaderInfo::binding_types.
const int kStorageBuffer = 1;

int no_device(const char* function) {
    QUOLL_LOGE("[VulkanDevice] %s: there is no device", function);
    return kError;
}

// False, after a message, unless all are storage buffers.
bool are_buffers(const char* function, int count, const int* types) {
    for (int i = 0; i < count; i++) {
        if (types[i] == kStorageBuffer) continue;
        QUOLL_LOGE("[VulkanDevice] %s: binding %d is no storage buffer", function, i);
        return false;
    }
    return true;
}

int checked(const GpuDevice& device, const char* what, VkResult result) {
    return result == VK_SUCCESS ? (int)kOk : device.error(what, result);
}

VkShaderModule module_of(const VulkanDevice& device, const std::vector<uint32_t>& words) {
    VkShaderModule module = VK_NULL_HANDLE;
    if (!device.is_valid()) return no_device("compile_shader_module"), module;
    const GpuDevice& gpu = *device.gpu();
    if (!is_spirv(words.data(), words.size())) {
        QUOLL_LOGE("[VulkanDevice] compile_shader_module: %zu words that are no SPIR-V",
                   words.size());
        return module;
    }
    VkShaderModuleCreateInfo code = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    code.codeSize = words.size() * 4, code.pCode = words.data();
    const VkResult result = gpu.vk().CreateShaderModule(gpu.handle(), &code, nullptr, &module);
    return checked(gpu, "a shader of the application", result) == kOk ? module : VK_NULL_HANDLE;
}

}  // namespace

VkQueue VulkanDevice::acquire_queue(uint32_t family) const {
    const std::shared_ptr<GpuDevice> device = gpu();
    if (device && family == device->queue_family()) return device->acquire_queue();
    QUOLL_LOGE("[VulkanDevice] acquire_queue: family %u, expected %u", family,
               info.compute_queue_family_index());
    return VK_NULL_HANDLE;
}

void VulkanDevice::reclaim_queue(uint32_t, VkQueue queue) const {
    if (gpu() && queue) gpu()->reclaim_queue(queue);
}

VkShaderModule VulkanDevice::compile_shader_module(const uint32_t* spv_data,
                                                   size_t spv_data_size) const {
    return module_of(*this, std::vector<uint32_t>(spv_data, spv_data + spv_data_size / 4));
}

VkShaderModule VulkanDevice::compile_shader_module(const uint32_t* spv_data, size_t spv_data_size,
                                                   uint32_t x, uint32_t y, uint32_t z) const {
    const uint32_t size[3] = {x, y, z};
    if (!is_spirv(spv_data, spv_data_size / 4))
        return compile_shader_module(spv_data, spv_data_size);
    return module_of(*this, with_local_size(spv_data, spv_data_size / 4, size));
}

int VulkanDevice::create_descriptorset_layout(int count, const int* types,
                                              VkDescriptorSetLayout* layout) const {
    const char* const function = "create_descriptorset_layout";
    if (!is_valid()) return no_device(function);
    if (!are_buffers(function, count, types)) return kError;
    std::vector<VkDescriptorSetLayoutBinding> rows((size_t)count);
    for (int i = 0; i < count; i++)
        rows[i] = {(uint32_t)i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                   nullptr};
    VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = (uint32_t)count, set.pBindings = rows.data();
    return checked(*gpu(), function,
                   gpu()->vk().CreateDescriptorSetLayout(vkdevice(), &set, nullptr, layout));
}

int VulkanDevice::create_pipeline_layout(int words, VkDescriptorSetLayout set,
                                         VkPipelineLayout* layout) const {
    const char* const function = "create_pipeline_layout";
    if (!is_valid()) return no_device(function);
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, (uint32_t)words * 4};
    VkPipelineLayoutCreateInfo made = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    made.setLayoutCount = set ? 1 : 0, made.pSetLayouts = &set;
    made.pushConstantRangeCount = words > 0 ? 1 : 0, made.pPushConstantRanges = &push;
    return checked(*gpu(), function,
                   gpu()->vk().CreatePipelineLayout(vkdevice(), &made, nullptr, layout));
}

int VulkanDevice::create_pipeline(VkShaderModule module, VkPipelineLayout layout,
                                  const std::vector<vk_specialization_type>& constants,
                                  uint32_t subgroup_size, VkPipelineCache cache,
                                  VkPipeline* pipeline) const {
    const char* const function = "create_pipeline";
    if (!is_valid()) return no_device(function);
    return checked(*gpu(), function,
                   make_compute_pipeline(*gpu(), module, layout, constants, {}, subgroup_size,
                                         cache, pipeline));
}

int VulkanDevice::create_descriptor_update_template(int count, const int* types,
                                                    VkDescriptorSetLayout set,
                                                    VkPipelineLayout layout,
                                                    VkDescriptorUpdateTemplate* made) const {
    const char* const function = "create_descriptor_update_template";
    if (!is_valid()) return no_device(function);
    if (!are_buffers(function, count, types)) return kError;
    return checked(*gpu(), function, create_update_template(*gpu(), count, set, layout, made));
}

VkMat VulkanDevice::get_dummy_buffer() const {
    return VkMat(4, (size_t)4u, acquire_blob_allocator());
}
VkImageMat VulkanDevice::get_dummy_image() const {
    return VkImageMat(4, (size_t)4u, acquire_blob_allocator());
}
VkImageMat VulkanDevice::get_dummy_image_readonly() const { return get_dummy_image(); }

bool VulkanDevice::shape_support_image_storage(const Mat& shape) const {
    const uint64_t sizes[] = {(uint64_t)shape.w, (uint64_t)shape.h * (uint64_t)shape.d,
                              (uint64_t)shape.c};
    const uint32_t axis = shape.dims == 1   ? info.max_image_dimension_1d()
                          : shape.dims == 2 ? info.max_image_dimension_2d()
                                            : info.max_image_dimension_3d();
    for (uint64_t size : sizes)
        if (size > axis) return false;
    return shape.dims > 0;
}

// ---------------------------------------------------------------- allocators of applications

VkBuffer VkAllocator::create_buffer(size_t size, VkFlags usage) {
    VkBuffer buffer = VK_NULL_HANDLE;
    if (!vkdev || !vkdev->is_valid()) return no_device("create_buffer"), buffer;
    VkBufferCreateInfo made = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    made.size = size, made.usage = usage;
    const GpuDevice& device = *vkdev->gpu();
    const VkResult result = device.vk().CreateBuffer(device.handle(), &made, nullptr, &buffer);
    return checked(device, "create_buffer", result) == kOk ? buffer : VK_NULL_HANDLE;
}

VkImage VkAllocator::create_image(int width, int height, int depth, int format, int tiling,
                                  VkFlags usage) {
    VkImage image = VK_NULL_HANDLE;
    if (!vkdev || !vkdev->is_valid()) return no_device("create_image"), image;
    VkImageCreateInfo made = {VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    made.imageType = VK_IMAGE_TYPE_3D, made.format = (VkFormat)format;
    made.extent = {(uint32_t)width, (uint32_t)height, (uint32_t)depth};
    made.mipLevels = made.arrayLayers = 1, made.samples = VK_SAMPLE_COUNT_1_BIT;
    made.tiling = (VkImageTiling)tiling, made.usage = usage;
    const GpuDevice& device = *vkdev->gpu();
    const VkResult result = vkCreateImage(device.handle(), &made, nullptr, &image);
    return checked(device, "create_image", result) == kOk ? image : VK_NULL_HANDLE;
}

VkImageView VkAllocator::create_imageview(VkImage image, int format) {
    VkImageView view = VK_NULL_HANDLE;
    if (!vkdev || !vkdev->is_valid()) return no_device("create_imageview"), view;
    VkImageViewCreateInfo made = {VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    made.image = image, made.viewType = VK_IMAGE_VIEW_TYPE_3D, made.format = (VkFormat)format;
    made.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    const GpuDevice& device = *vkdev->gpu();
    const VkResult result = vkCreateImageView(device.handle(), &made, nullptr, &view);
    return checked(device, "create_imageview", result) == kOk ? view : VK_NULL_HANDLE;
}

VkDeviceMemory VkAllocator::allocate(size_t size, uint32_t type, const void* next) {
    VkDeviceMemory memory = VK_NULL_HANDLE;
    if (!vkdev || !vkdev->is_valid()) return no_device("allocate_memory"), memory;
    VkMemoryAllocateInfo made = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    made.pNext = next, made.allocationSize = size, made.memoryTypeIndex = type;
    const GpuDevice& device = *vkdev->gpu();
    const VkResult result = device.vk().AllocateMemory(device.handle(), &made, nullptr, &memory);
    return checked(device, "allocate_memory", result) == kOk ? memory : VK_NULL_HANDLE;
}

VkDeviceMemory VkAllocator::allocate_memory(size_t size, uint32_t type) {
    return allocate(size, type, nullptr);
}

VkDeviceMemory VkAllocator::allocate_dedicated_memory(size_t size, uint32_t type, VkImage image,
                                                      VkBuffer buffer) {
    VkMemoryDedicatedAllocateInfo only = {VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
    only.image = image, only.buffer = buffer;
    return allocate(size, type, &only);
}

VkDeviceMemory VkAllocator::allocate_import_host_memory(size_t size, uint32_t type, void* data) {
    if (!VkImportedMemory::alignment(vkdev)) {
        QUOLL_LOGE("Vulkan: %s takes no memory of the host",
                   vkdev ? vkdev->info.device_name() : "no device");
        return VK_NULL_HANDLE;
    }
    VkImportMemoryHostPointerInfoEXT host = {VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
    host.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    host.pHostPointer = data;
    return allocate(size, type, &host);
}

}  // namespace quoll
