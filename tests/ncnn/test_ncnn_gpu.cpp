// The names of ncnn's gpu.h, allocator.h, command.h and pipeline.h that need a device: a program
// that calls Vulkan beside the library. Nothing is looked at where there is no device.
#include "gpu.h"

#include <string.h>

#include "check.h"
#include "command.h"
#include "mat.h"
#include "net.h"
#include "pipeline.h"

#if NCNN_VULKAN && QUOLL_HAS_VULKAN_FUNCTIONS

namespace {

// An empty main() for groups of one.
const uint32_t kEmptyShader[] = {
    0x07230203, 0x00010000, 0,          5,          0,     // 5 numbers
    0x00020011, 1,                                         // shader
    0x0003000e, 0,          1,                             // memory model
    0x0005000f, 5,          1,          0x6e69616d, 0,     // main
    0x00060010, 1,          17,         1,          1, 1,  // its groups
    0x00020013, 2,          0x00030021, 3,          2,     // types
    0x00050036, 2,          1,          0,          3, 0x000200f8, 4, 0x000100fd, 0x00010038};

// As programs write it that bring memory of their own.
class OwnAllocator : public ncnn::VkAllocator {
public:
    explicit OwnAllocator(const ncnn::VulkanDevice* device) : VkAllocator(device) {
        buffer_memory_type_index = vkdev->find_memory_index(
            ~0u, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, 0, 0);
        mappable = vkdev->is_mappable(buffer_memory_type_index);
        coherent = vkdev->is_coherent(buffer_memory_type_index);
    }
    virtual ncnn::VkBufferMemory* fastMalloc(size_t size) {
        ncnn::VkBufferMemory* block = new ncnn::VkBufferMemory();
        block->buffer = create_buffer(size, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                                VK_BUFFER_USAGE_TRANSFER_DST_BIT);
        VkMemoryRequirements needed;
        ncnn::vkGetBufferMemoryRequirements(vkdev->vkdevice(), block->buffer, &needed);
        block->memory_type_index = buffer_memory_type_index;
        block->memory = alive % 2 ? allocate_memory(needed.size, buffer_memory_type_index)
                                  : allocate_dedicated_memory(needed.size, buffer_memory_type_index,
                                                              VkImage(0), block->buffer);
        ncnn::vkBindBufferMemory(vkdev->vkdevice(), block->buffer, block->memory, 0);
        ncnn::vkMapMemory(vkdev->vkdevice(), block->memory, 0, VK_WHOLE_SIZE, 0,
                          &block->mapped_ptr);
        block->capacity = size;
        block->access_flags = 0, block->stage_flags = VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT;
        alive++;
        return block;
    }
    virtual void fastFree(ncnn::VkBufferMemory* block) {
        ncnn::vkDestroyBuffer(vkdev->vkdevice(), block->buffer, 0);
        ncnn::vkFreeMemory(vkdev->vkdevice(), block->memory, 0);
        delete block;
        alive--;
    }
    virtual ncnn::VkImageMemory* fastMalloc(int w, int h, int, size_t, int) {
        ncnn::VkImageMemory* image = new ncnn::VkImageMemory();
        image->width = w, image->height = h;
        return image;
    }
    virtual void fastFree(ncnn::VkImageMemory* image) { delete image; }
    // An image that copies go to.
    void make_image() {
        const VkImage image =
            create_image(8, 4, 2, VK_FORMAT_R32_SFLOAT, VK_IMAGE_TILING_OPTIMAL,
                         VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_STORAGE_BIT);
        VkMemoryRequirements needed = {};
        ncnn::vkGetImageMemoryRequirements(vkdev->vkdevice(), image, &needed);
        CHECK(needed.size >= 8 * 4 * 2 * 4);
        const VkDeviceMemory memory = allocate_dedicated_memory(
            needed.size, vkdev->find_memory_index(needed.memoryTypeBits, 0, 0, 0), image,
            VkBuffer(0));
        CHECK(ncnn::vkBindImageMemory(vkdev->vkdevice(), image, memory, 0) == VK_SUCCESS);
        const VkImageView view = create_imageview(image, VK_FORMAT_R32_SFLOAT);
        CHECK(view != 0);
        ncnn::vkDestroyImageView(vkdev->vkdevice(), view, 0);
        ncnn::vkDestroyImage(vkdev->vkdevice(), image, 0);
        ncnn::vkFreeMemory(vkdev->vkdevice(), memory, 0);
    }
    int alive = 0;
};

// As programs write them that keep pipelines of their own.
class OwnCache : public ncnn::PipelineCache {
public:
    explicit OwnCache(const ncnn::VulkanDevice* device) : PipelineCache(device) {}
    const std::vector<ncnn::vk_specialization_type> none;
    int get(uint32_t size, VkPipeline* pipeline, ncnn::ShaderInfo& info) const {
        VkShaderModule module;
        VkDescriptorSetLayout set;
        VkPipelineLayout layout;
        VkDescriptorUpdateTemplateKHR update;
        return get_pipeline(kEmptyShader, sizeof(kEmptyShader), none, size, 1, 1, 0, &module, &set,
                            &layout, pipeline, &update, info);
    }
    int make(VkShaderModule module, const ncnn::ShaderInfo& info, VkDescriptorSetLayout* set,
             VkPipelineLayout* layout, VkPipeline* pipeline,
             VkDescriptorUpdateTemplateKHR* update) const {
        return vkdev->is_valid()
                   ? new_pipeline(module, info, none, 0, set, layout, pipeline, update)
                   : -1;
    }
};
class OwnPipeline : public ncnn::Pipeline {
public:
    OwnPipeline(const ncnn::VulkanDevice* device, const OwnCache& cache) : Pipeline(device) {
        module_ = device->compile_shader_module(kEmptyShader, sizeof(kEmptyShader));
        ncnn::ShaderInfo info;
        CHECK(ncnn::resolve_shader_info(kEmptyShader, sizeof(kEmptyShader), info) == 0);
        info.binding_count = 2, info.binding_types[0] = info.binding_types[1] = 1;
        CHECK(cache.make(module_, info, &set_, &layout_, &pipeline_, &update_) == 0);
        set_shader_module(module_);
        set_descriptorset_layout(set_);
        set_pipeline_layout(layout_);
        set_pipeline(pipeline_);
        set_descriptor_update_template(update_);
        set_shader_info(info);
    }
    virtual ~OwnPipeline() {
        const VkDevice handle = vkdev->vkdevice();
        vkdev->vkDestroyDescriptorUpdateTemplateKHR(handle, update_, 0);
        ncnn::vkDestroyPipeline(handle, pipeline_, 0);
        ncnn::vkDestroyPipelineLayout(handle, layout_, 0);
        ncnn::vkDestroyDescriptorSetLayout(handle, set_, 0);
        ncnn::vkDestroyShaderModule(handle, module_, 0);
    }

private:
    VkShaderModule module_;
    VkDescriptorSetLayout set_;
    VkPipelineLayout layout_;
    VkPipeline pipeline_;
    VkDescriptorUpdateTemplateKHR update_;
};
class OwnCompute : public ncnn::VkCompute {
public:
    explicit OwnCompute(const ncnn::VulkanDevice* device) : VkCompute(device) {}
    const ncnn::VulkanDevice* device() const { return vkdev; }
};
class OwnTransfer : public ncnn::VkTransfer {
public:
    explicit OwnTransfer(const ncnn::VulkanDevice* device) : VkTransfer(device) {}
    const ncnn::VulkanDevice* device() const { return vkdev; }
};

ncnn::Mat numbers() {
    ncnn::Mat m(5, 3, 8);
    for (int q = 0; q < m.c; q++)
        for (int i = 0; i < 15; i++) m.channel(q)[i] = (float)(q * 15 + i);
    return m;
}

bool same(const ncnn::Mat& a, const ncnn::Mat& b) {
    bool all = a.w == b.w && a.h == b.h && a.c == b.c && a.elemsize == b.elemsize;
    for (int q = 0; all && q < a.c; q++)
        all = memcmp(a.channel(q), b.channel(q), (size_t)a.w * a.h * a.elemsize) == 0;
    return all;
}

void test_functions() {
    const char* missing = 0;
#define HAS(name) \
    if (!ncnn::name && (ncnn::support_VK_KHR_surface || !strstr(#name, "Surface"))) missing = #name;
    QUOLL_VULKAN_FUNCTIONS(HAS)
#undef HAS
    CHECK(missing == 0);
    int versions = 0;
#define ADD(name) versions += ncnn::support_##name;
    QUOLL_VULKAN_INSTANCE_EXTENSIONS(ADD)
#undef ADD
    CHECK(versions > 0);
    CHECK(ncnn::vkGetDeviceProcAddr(ncnn::get_gpu_device()->vkdevice(), "vkCmdDispatch") != 0);
}

// Functions that a device has as members, which are pointers in all but their type.
void test_device_functions(const ncnn::VulkanDevice* device) {
    const char* wrong = 0;
#define SAME(name)                        \
    const PFN_##name name = device->name; \
    if ((name == 0) != !device->name || (device->name != NULL) != !!name) wrong = #name;
    QUOLL_VULKAN_EXTENSION_FUNCTIONS(SAME)
#undef SAME
    CHECK(wrong == 0);
    // Those of Vulkan 1.1 are always there.
    CHECK(device->vkBindBufferMemory2KHR && device->vkBindImageMemory2KHR);
    CHECK(device->vkTrimCommandPoolKHR && device->vkGetDescriptorSetLayoutSupportKHR);
    CHECK(device->vkCreateDescriptorUpdateTemplateKHR);
    CHECK(!device->info.support_VK_KHR_push_descriptor() || device->vkCmdPushDescriptorSetKHR);
    CHECK(!device->info.support_VK_KHR_swapchain() || device->vkQueuePresentKHR);
    CHECK(!device->info.support_VK_EXT_external_memory_host() ||
          device->vkGetMemoryHostPointerPropertiesEXT);
    CHECK(*device->immutable_texelfetch_sampler() != 0);

    const VkDevice handle = device->vkdevice();
    VkBufferCreateInfo wanted = {};
    wanted.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    wanted.size = 1000;
    wanted.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    VkBuffer buffer;
    CHECK(ncnn::vkCreateBuffer(handle, &wanted, 0, &buffer) == VK_SUCCESS);
    VkBufferMemoryRequirementsInfo2KHR asked = {};
    asked.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2;
    asked.buffer = buffer;
    VkMemoryRequirements2KHR needed = {};
    needed.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2;
    device->vkGetBufferMemoryRequirements2KHR(handle, &asked, &needed);
    CHECK(needed.memoryRequirements.size >= 1000);
    ncnn::vkDestroyBuffer(handle, buffer, 0);
    if (device->info.support_ycbcr_conversion()) {
        VkSamplerYcbcrConversionCreateInfoKHR nv12 = {};
        nv12.sType = VK_STRUCTURE_TYPE_SAMPLER_YCBCR_CONVERSION_CREATE_INFO;
        nv12.format = VK_FORMAT_G8_B8R8_2PLANE_420_UNORM;
        nv12.ycbcrModel = VK_SAMPLER_YCBCR_MODEL_CONVERSION_YCBCR_601;
        VkSamplerYcbcrConversionKHR conversion;
        CHECK(device->vkCreateSamplerYcbcrConversionKHR(handle, &nv12, 0, &conversion) ==
              VK_SUCCESS);
        device->vkDestroySamplerYcbcrConversionKHR(handle, conversion, 0);
    }
}

// What the functions themselves answer.
void test_queries(const ncnn::GpuInfo& info) {
    VkPhysicalDeviceVulkanMemoryModelFeatures model = {};
    model.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES;
    VkPhysicalDevice16BitStorageFeatures halves = {};
    halves.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
    halves.pNext = &model;
    VkPhysicalDeviceFeatures2 all = {};
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    all.pNext = &halves;
    ncnn::vkGetPhysicalDeviceFeatures2KHR(info.physicalDevice(), &all);
    CHECK(info.query16BitStorageFeatures().storageBuffer16BitAccess ==
          halves.storageBuffer16BitAccess);
    CHECK(info.queryVulkanMemoryModelFeatures().vulkanMemoryModel == model.vulkanMemoryModel);
    const bool bytes = info.query8BitStorageFeatures().storageBuffer8BitAccess != 0;
    CHECK(bytes || !info.support_int8_storage());
    const bool arithmetic = info.queryFloat16Int8Features().shaderFloat16 != 0;
    CHECK(arithmetic || !info.support_fp16_arithmetic());
    CHECK((info.querySamplerYcbcrConversionFeatures().samplerYcbcrConversion != 0) ==
          info.support_ycbcr_conversion());
    CHECK((info.querySubgroupSizeControlFeatures().subgroupSizeControl != 0) ==
          info.support_subgroup_size_control());
    CHECK(!info.queryCooperativeMatrixFeaturesNV().cooperativeMatrix ||
          info.support_VK_NV_cooperative_matrix());
    CHECK(!info.queryShaderAtomicFloatFeatures().shaderBufferFloat32Atomics ||
          info.support_VK_EXT_shader_atomic_float());
    CHECK(!info.queryShaderAtomicFloat2Features().shaderBufferFloat32AtomicMinMax ||
          info.support_VK_EXT_shader_atomic_float2());
    CHECK(info.queryShaderSubgroupExtendedTypesFeatures().shaderSubgroupExtendedTypes <= VK_TRUE);
    CHECK(info.queryShaderIntegerDotProductFeatures().shaderIntegerDotProduct <= VK_TRUE);
    // Structures that old headers lack are there too: type, next, then words of 0 or 1.
    struct Any {
        uint32_t type;
        void* next;
        VkBool32 first;
    };
    CHECK(info.queryCooperativeMatrixFeatures<Any>().first <= VK_TRUE);
    CHECK(info.queryCooperativeMatrix2FeaturesNV<Any>().first <= VK_TRUE);
    CHECK(info.queryCooperativeVectorFeaturesNV<Any>().first <= VK_TRUE);
    CHECK(info.queryRobustness2Features<Any>().first <= VK_TRUE);
    CHECK(info.queryShaderBfloat16Features<Any>().first <= VK_TRUE);
    CHECK(info.queryShaderFloat8Features<Any>().first <= VK_TRUE);
    CHECK(info.queryShaderFloatControls2Features<Any>().first <= VK_TRUE);
    CHECK(info.queryShaderSubgroupRotateFeatures<Any>().first <= VK_TRUE);

    CHECK(info.querySubgroupProperties().subgroupSize == info.subgroup_size());
    CHECK(!strcmp(info.queryDriverProperties().driverName, info.driver_name()));
    CHECK((uint32_t)info.queryDriverProperties().driverID == info.driver_id());
    CHECK(info.querySubgroupSizeControlProperties().maxSubgroupSize <= info.max_subgroup_size());
    CHECK(info.queryFloatControlsProperties().shaderDenormPreserveFloat32 <= VK_TRUE);
    CHECK(info.queryShaderIntegerDotProductProperties().integerDotProduct8BitUnsignedAccelerated <=
          VK_TRUE);
    CHECK((info.queryExternalMemoryHostProperties().minImportedHostPointerAlignment > 0) ==
          (info.support_VK_EXT_external_memory_host() > 0));
    CHECK(info.queryRobustness2Properties<Any>().first < (1u << 16));
    CHECK(info.queryCooperativeMatrix2PropertiesNV<Any>().first < (1u << 16));
    CHECK(info.queryCooperativeVectorPropertiesNV<Any>().first <= ~0u);
    const VkBaseOutStructure* first = (const VkBaseOutStructure*)info.queryExtensionFeatures();
    CHECK(first && first->sType >= 1000000000);
    CHECK(info.queryExtensionProperties() != 0);
    uint32_t answers = 0;
    if (info.support_VK_NV_cooperative_matrix())
        ncnn::vkGetPhysicalDeviceCooperativeMatrixPropertiesNV(info.physicalDevice(), &answers, 0);
    CHECK(info.queryCooperativeMatrixSubPropertiesNV().size() == answers);
    const ncnn::GpuInfo none;
    CHECK(none.query8BitStorageFeatures().storageBuffer8BitAccess == 0);

    int m = -1, n = -1, k = -1, subgroup = -1;
    info.get_optimal_cooperative_matrix_mnk(64, 64, 64, 0, 1, 3, m, n, k, subgroup);
    CHECK((m > 0) == (n > 0) && (m > 0) == (k > 0) && subgroup == (int)info.subgroup_size());
    CHECK(m > 0 || !info.support_cooperative_matrix());
}

// Work of the program's own on a queue of the device.
void test_queue(const ncnn::VulkanDevice* device, OwnAllocator* own) {
    const uint32_t family = device->info.compute_queue_family_index();
    ncnn::VkBufferMemory* block = own->fastMalloc(64);
    const VkDevice handle = device->vkdevice();
    VkCommandPoolCreateInfo pool_info = {};
    pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool_info.queueFamilyIndex = family;
    VkCommandPool pool;
    CHECK(ncnn::vkCreateCommandPool(handle, &pool_info, 0, &pool) == VK_SUCCESS);
    VkCommandBufferAllocateInfo wanted = {};
    wanted.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    wanted.commandPool = pool, wanted.commandBufferCount = 1;
    VkCommandBuffer commands;
    CHECK(ncnn::vkAllocateCommandBuffers(handle, &wanted, &commands) == VK_SUCCESS);
    VkCommandBufferBeginInfo begin = {};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    CHECK(ncnn::vkBeginCommandBuffer(commands, &begin) == VK_SUCCESS);
    ncnn::vkCmdFillBuffer(commands, block->buffer, 0, 64, 0x01020304);
    CHECK(ncnn::vkEndCommandBuffer(commands) == VK_SUCCESS);
    const VkQueue queue = device->acquire_queue(family);
    CHECK(queue != 0);
    VkSubmitInfo submit = {};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1, submit.pCommandBuffers = &commands;
    CHECK(ncnn::vkQueueSubmit(queue, 1, &submit, VkFence(0)) == VK_SUCCESS);
    CHECK(ncnn::vkQueueWaitIdle(queue) == VK_SUCCESS);
    device->reclaim_queue(family, queue);
    const VkQueue again = device->acquire_queue(family);
    CHECK(again != 0);
    device->reclaim_queue(family, again);
    ncnn::vkDestroyCommandPool(handle, pool, 0);
    CHECK(own->invalidate(block) == 0 && own->flush(block) == 0);
    CHECK(((const uint32_t*)block->mapped_ptr)[15] == 0x01020304);
    own->fastFree(block);
}

void test_pipelines(const ncnn::VulkanDevice* device) {
    const VkDevice handle = device->vkdevice();
    const int types[] = {1, 1};
    VkDescriptorSetLayout set;
    VkPipelineLayout layout;
    VkPipeline pipeline, other;
    VkDescriptorUpdateTemplate update;
    CHECK(device->create_descriptorset_layout(2, types, &set) == 0);
    CHECK(device->create_pipeline_layout(3, set, &layout) == 0);
    CHECK(device->create_descriptor_update_template(2, types, set, layout, &update) == 0);
    const VkShaderModule plain = device->compile_shader_module(kEmptyShader, sizeof(kEmptyShader));
    const VkShaderModule sized =
        device->compile_shader_module(kEmptyShader, sizeof(kEmptyShader), 8, 4, 1);
    CHECK(plain != 0 && sized != 0);
    const std::vector<ncnn::vk_specialization_type> none;
    CHECK(device->create_pipeline(plain, layout, none, 0, &pipeline) == 0);
    CHECK(device->create_pipeline(sized, layout, none, 0, VkPipelineCache(0), &other) == 0);
    ncnn::vkDestroyPipeline(handle, pipeline, 0);
    ncnn::vkDestroyPipeline(handle, other, 0);
    ncnn::vkDestroyShaderModule(handle, plain, 0);
    ncnn::vkDestroyShaderModule(handle, sized, 0);
    device->vkDestroyDescriptorUpdateTemplateKHR(handle, update, 0);
    ncnn::vkDestroyPipelineLayout(handle, layout, 0);
    ncnn::vkDestroyDescriptorSetLayout(handle, set, 0);

    ncnn::Pipeline made(device);
    CHECK(made.pipeline() == 0 && made.shader_module() == 0);
    made.set_local_size_xyz(1, 1, 1);
    CHECK(made.create(kEmptyShader, sizeof(kEmptyShader), none) == 0);
    CHECK(made.pipeline() != 0 && made.shader_module() != 0);
    CHECK(made.pipeline_layout() != 0 && made.descriptorset_layout() != 0);
    ncnn::VkCompute cmd(device);
    const std::vector<ncnn::VkMat> buffers;
    const std::vector<ncnn::VkImageMat> images;
    const std::vector<ncnn::vk_constant_type> constants;
    ncnn::Mat dispatcher(3, 2, 4);
    ncnn::VkMat dispatcher_gpu;
    dispatcher_gpu.w = 5, dispatcher_gpu.h = 1, dispatcher_gpu.c = 2;
    CHECK(cmd.record_pipeline(&made, buffers, images, constants, dispatcher) == 0);
    CHECK(cmd.record_pipeline(&made, buffers, images, constants, dispatcher_gpu) == 0);
    CHECK(cmd.record_pipeline(&made, buffers, constants, dispatcher_gpu) == 0);
    CHECK(cmd.pending_dispatch_total() == 24 + 10 + 10);
    CHECK(cmd.submit_and_wait() == 0 && cmd.pending_dispatch_total() == 0);
}

void test_derived(const ncnn::VulkanDevice* device, OwnAllocator* own) {
    OwnCache cache(device);
    VkPipeline first, again, larger, new_one;
    ncnn::ShaderInfo info;
    CHECK(cache.get(1, &first, info) == 0 && cache.get(1, &again, info) == 0 && first == again);
    CHECK(cache.get(2, &larger, info) == 0 && larger != first && larger != 0);
    CHECK(info.binding_count == 0 && info.push_constant_count == 0 && info.reserved_0 == 0);
    CHECK(info.reserved_1 == 0 && info.reserved_2 == 0 && info.reserved_3 == 0);
    cache.clear();
    CHECK(cache.get(1, &new_one, info) == 0 && new_one != 0);
    const uint32_t wrong[] = {1, 2, 3};
    VkShaderModule module;
    VkDescriptorSetLayout set;
    VkPipelineLayout layout;
    VkDescriptorUpdateTemplateKHR update;
    CHECK(cache.get_pipeline(wrong, sizeof(wrong), cache.none, 1, 1, 1, 0, &module, &set, &layout,
                             &new_one, &update, info) < 0);

    OwnPipeline made(device, cache);
    CHECK(made.pipeline() != 0 && made.descriptor_update_template() != 0);
    made.set_local_size_xyz(1, 1, 1);
    std::unique_ptr<ncnn::VkCompute> cmd(new OwnCompute(device));
    CHECK(static_cast<OwnCompute*>(cmd.get())->device() == device);
    ncnn::Option opt;
    std::vector<ncnn::VkMat> buffers(2);
    cmd->record_clone(numbers(), buffers[0], opt);
    ncnn::VkImageMat image;
    cmd->record_clone(numbers(), image, opt);
    const std::vector<ncnn::vk_constant_type> constants;
    CHECK(cmd->record_pipeline(&made, buffers, constants, buffers[0]) == 0);
    const std::vector<ncnn::VkImageMat> images(2, image);
    CHECK(cmd->record_pipeline(&made, images, constants, image) == 0);
    CHECK(cmd->submit_and_wait() == 0);
    CHECK(OwnTransfer(device).device() == device);
    own->make_image();
}

void test_memory(const ncnn::VulkanDevice* device, OwnAllocator* own) {
    CHECK(own->mappable && own->coherent);
    ncnn::VkImageMemory* image = own->fastMalloc(3, 2, 1, (size_t)4u, 1);
    CHECK(image->width == 3);
    own->fastFree(image);
    {
        ncnn::Option opt;
        opt.blob_vkallocator = opt.staging_vkallocator = own;
        ncnn::VkCompute cmd(device);
        ncnn::VkMat x, packed, half;
        ncnn::Mat back, wide;
        cmd.record_clone(numbers(), x, opt);
        device->convert_packing(x, packed, 4, cmd, opt);
        device->convert_packing(packed, half, 1, 2, cmd, opt);
        CHECK(packed.elempack == 4 && packed.c == 2 && half.elemsize == 2u);
        ncnn::Mat like, batch;
        like.create_like(packed);
        batch.create_like(half, 3);
        CHECK(like.elempack == 4 && like.w == packed.w && like.h == packed.h && like.c == 2);
        CHECK(like.data && like.elemsize == 16u && batch.elemsize == 2u && batch.n == 3);
        opt.use_packing_layout = false;
        cmd.record_download(packed, back, opt);
        cmd.record_download(half, wide, opt);
        CHECK(cmd.submit_and_wait() == 0);
        CHECK(same(back, numbers()) && same(wide, numbers()));
        CHECK(x.mapped_ptr() != 0 && ((const float*)x.mapped_ptr())[7] == 7.f);

        ncnn::VkBufferMemory* block = own->fastMalloc(4096 * 2);
        {
            ncnn::VkMat vec(4, block, (size_t)4u, own), grid(4, 2, block, (size_t)4u, own);
            ncnn::VkMat dim(4, 2, 2, block, (size_t)4u, own);
            ncnn::VkMat cube(4, 2, 2, 2, block, (size_t)16u, 4, own);
            ncnn::VkMat items(4, 2, block, (size_t)4u, 1, 2, own);
            CHECK(vec.refcount == 0 && vec.data == block && grid.total() == 8);
            CHECK(dim.total() == 16 && cube.elempack == 4 && cube.total() == 32);
            CHECK(items.n == 2 && items.nstep * 4 == 4096);
            ncnn::VkMat copy = dim;
            CHECK(copy.buffer() == block->buffer);
        }
        own->fastFree(block);
    }
    CHECK(own->alive == 0);

    ncnn::VkStagingAllocator staging(device);
    staging.set_size_compare_ratio(0.f);  // any block will do
    ncnn::VkBufferMemory* large = staging.fastMalloc(100000);
    staging.fastFree(large);
    ncnn::VkBufferMemory* small = staging.fastMalloc(16);
    CHECK(small == large && staging.mappable && small->mapped_ptr != 0);
    staging.fastFree(small);
    ncnn::VkWeightAllocator weights(device, true);
    CHECK(weights.mappable);
    CHECK(device->get_dummy_buffer().buffer() != 0);
    CHECK(!device->get_dummy_image().empty() && !device->get_dummy_image_readonly().empty());
    CHECK(device->shape_support_image_storage(ncnn::Mat(64, 64, 3)));
    ncnn::Mat wide;
    wide.dims = 2, wide.w = 1 << 30, wide.h = wide.d = wide.c = 1;
    CHECK(!device->shape_support_image_storage(wide));
    ncnn::VkTransfer transfer(device);
    ncnn::VkMat uploaded;
    transfer.record_upload(numbers(), uploaded, ncnn::Option());
    CHECK(transfer.pending_upload_total() == 480 && transfer.submit_and_wait() == 0);
    CHECK(transfer.pending_upload_total() == 0 && uploaded.dims == 1);
}

}  // namespace

// A net has a device once it is told to use one: the default one, or what it was told.
void test_device_of_net() {
    ncnn::Net net;
    CHECK(net.vulkan_device() == 0);
    net.opt.use_vulkan_compute = true;
    CHECK(net.vulkan_device() == ncnn::get_gpu_device());
    const int last = ncnn::get_gpu_count() - 1;
    net.opt.vulkan_device_index = last;
    CHECK(net.vulkan_device() == ncnn::get_gpu_device(last));
    net.opt.vulkan_device_index = last + 1;
    CHECK(net.vulkan_device() == 0);
    net.set_vulkan_device(ncnn::get_gpu_device());
    CHECK(net.vulkan_device() == ncnn::get_gpu_device());
    ncnn::Net other;
    other.set_vulkan_device(0);
    CHECK(other.vulkan_device() == ncnn::get_gpu_device(0));
}

int main() {
    if (ncnn::get_gpu_count() > 0) {
        test_device_of_net();
        const ncnn::VulkanDevice* device = ncnn::get_gpu_device();
        OwnAllocator own(device);
        test_functions();
        test_device_functions(device);
        test_queries(device->info);
        test_queue(device, &own);
        test_pipelines(device);
        test_derived(device, &own);
        test_memory(device, &own);
    }
    return result_of_checks();
}
#else
int main() { return 0; }
#endif
