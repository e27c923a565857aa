#include "gpu/device.h"
#include "quoll/command.h"
#include "quoll/log.h"
#include "quoll/vkmat.h"
#include "quoll/vulkan_functions.h"

namespace quoll {

struct VulkanDevice::Private {
    explicit Private(std::shared_ptr<GpuDevice> opened) : gpu(std::move(opened)) {}
    const std::shared_ptr<GpuDevice> gpu;
    std::unique_ptr<VkBlobAllocator> blobs;
    std::unique_ptr<VkStagingAllocator> staging;
    std::unique_ptr<PipelineCache> pipelines;
    VkSampler sampler = VK_NULL_HANDLE;
    ~Private() {
        if (sampler) vkDestroySampler(gpu->handle(), sampler, nullptr);
    }
};

// The place of a function that this class will be callable as.
#define QUOLL_VK_PLACE(name) name((const name##_function&)functions_[k_##name]),

VulkanDevice::VulkanDevice(int index)
    : info(get_gpu_info(index)),
      QUOLL_VULKAN_DEVICE_FUNCTIONS(QUOLL_VK_PLACE) functions_(),
      index_(index),
      d(new Private(open_gpu(index))) {
    d->blobs.reset(new VkBlobAllocator(this));
    d->staging.reset(new VkStagingAllocator(this));
    d->pipelines.reset(new PipelineCache(this));
    if (!d->gpu) return;
#define QUOLL_VK_LOAD(name) functions_[k_##name] = find_device_function(*d->gpu, #name);
    QUOLL_VULKAN_DEVICE_FUNCTIONS(QUOLL_VK_LOAD)
#undef QUOLL_VK_LOAD
    VkSamplerCreateInfo texels = {VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    texels.addressModeU = texels.addressModeV = texels.addressModeW =
        VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
    texels.unnormalizedCoordinates = VK_TRUE;
    if (vkCreateSampler(vkdevice(), &texels, nullptr, &d->sampler) != VK_SUCCESS)
        d->sampler = VK_NULL_HANDLE;
}
#undef QUOLL_VK_PLACE

VulkanDevice::~VulkanDevice() { delete d; }

bool VulkanDevice::is_valid() const { return d->gpu != nullptr; }
VkAllocator* VulkanDevice::acquire_blob_allocator() const { return d->blobs.get(); }
VkAllocator* VulkanDevice::acquire_staging_allocator() const { return d->staging.get(); }
uint32_t VulkanDevice::get_heap_budget() const {
    return d->gpu ? (uint32_t)(d->gpu->memory_budget() >> 20) : 0;
}
VkDevice VulkanDevice::vkdevice() const { return d->gpu ? d->gpu->handle() : VK_NULL_HANDLE; }

const VkSampler* VulkanDevice::immutable_texelfetch_sampler() const { return &d->sampler; }

static VkMemoryPropertyFlags flags_of_type(const GpuInfo& info, uint32_t type) {
    const VkPhysicalDeviceMemoryProperties& memory = info.physicalDeviceMemoryProperties();
    return type < memory.memoryTypeCount ? memory.memoryTypes[type].propertyFlags : 0;
}

static int count_bits(VkFlags flags) {
    int count = 0;
    for (; flags; flags &= flags - 1) count++;
    return count;
}

uint32_t VulkanDevice::find_memory_index(uint32_t type_bits, VkFlags required, VkFlags preferred,
                                         VkFlags preferred_not) const {
    const uint32_t none = 0xffffffffu;
    uint32_t best = none;
    int best_score = 0;
    for (uint32_t i = 0; i < 32; i++) {
        const VkFlags flags = flags_of_type(info, i);
        const bool fits = i < info.physicalDeviceMemoryProperties().memoryTypeCount &&
                          (type_bits >> i & 1) && (flags & required) == required;
        const int score = count_bits(flags & preferred) - count_bits(flags & preferred_not);
        if (fits && (best == none || score > best_score)) best = i, best_score = score;
    }
    return best;
}
bool VulkanDevice::is_mappable(uint32_t type) const {
    return flags_of_type(info, type) & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
}
bool VulkanDevice::is_coherent(uint32_t type) const {
    return flags_of_type(info, type) & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
}
bool VulkanDevice::is_device_local(uint32_t type) const {
    return flags_of_type(info, type) & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
}

const PipelineCache* VulkanDevice::get_pipeline_cache() const { return d->pipelines.get(); }

void VulkanDevice::convert_packing(const VkMat& src, VkMat& dst, int elempack, VkCompute& cmd,
                                   const Option& opt) const {
    convert_packing(src, dst, elempack, 0, cmd, opt);
}

void VulkanDevice::convert_packing(const VkMat& src, VkMat& dst, int elempack, int cast_type_to,
                                   VkCompute& cmd, const Option& opt) const {
    const DType types[] = {src.dtype, DType::f32, DType::f16, DType::s32, DType::s8, DType::bf16};
    const bool known = cast_type_to >= 0 && cast_type_to < 6;
    if (!known)
        QUOLL_LOGE("[VulkanDevice] convert_packing: type %d, expected 0 to 5", cast_type_to);
    if (!known || cmd.record_convert(src, dst, elempack, types[cast_type_to], opt) != 0)
        dst.release();
}

std::shared_ptr<GpuDevice> VulkanDevice::gpu() const { return d->gpu; }

}  // namespace quoll
