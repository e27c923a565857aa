#include "gpu/features.h"

#include <string.h>

#include <algorithm>
#include <string>

#include "quoll/vulkan_functions.h"

namespace quoll {

namespace {

const uint32_t kMostQueues = 4;
// What shaders for matrix units take at most: the tiles of conv_tiles.cpp and conv_window.comp have
// up to 48 KB, and eight subgroups.
const uint32_t kMatrixSharedMemory = 48 << 10, kMatrixSubgroups = 8;

class Extensions {
public:
    Extensions(const InstanceFunctions& vk, VkPhysicalDevice device) {
        for (const VkExtensionProperties& extension : list_extensions(vk, device))
            names_.push_back(extension.extensionName);
    }
    bool has(const char* name) const {
        return std::find(names_.begin(), names_.end(), name) != names_.end();
    }

private:
    std::vector<std::string> names_;
};

uint32_t probe_processors(const InstanceFunctions& vk, VkPhysicalDevice device,
                          const Extensions& extensions) {
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
    VkPhysicalDeviceShaderCorePropertiesAMD amd = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
    VkPhysicalDeviceProperties2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    if (extensions.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
        all.pNext = &nvidia;
        vk.GetPhysicalDeviceProperties2(device, &all);
        return nvidia.shaderSMCount;
    }
    if (!extensions.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) return 0;
    all.pNext = &amd;
    vk.GetPhysicalDeviceProperties2(device, &all);
    return amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray;
}

uint64_t probe_host_alignment(const InstanceFunctions& vk, VkPhysicalDevice device,
                              const Extensions& extensions) {
    if (!extensions.has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) return 0;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &host, {}};
    vk.GetPhysicalDeviceProperties2(device, &all);
    return host.minImportedHostPointerAlignment;
}

// What the device's matrix units multiply.
typedef std::vector<VkCooperativeMatrixPropertiesKHR> Matrices;

// Whether factors of a type have sums of f32, in a subgroup.
bool multiplies(const VkCooperativeMatrixPropertiesKHR& p, VkComponentTypeKHR factors) {
    return p.AType == factors && p.BType == factors && p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
           p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR && p.scope == VK_SCOPE_SUBGROUP_KHR;
}

// f16 times f16 plus f32 in a subgroup, of a size that divides the shaders' blocks of 16; the
// largest.
void probe_sizes(const Matrices& matrices, MatrixUnits* units) {
    for (const VkCooperativeMatrixPropertiesKHR& p : matrices) {
        if (!multiplies(p, VK_COMPONENT_TYPE_FLOAT16_KHR)) continue;
        if (!p.MSize || !p.NSize || !p.KSize) continue;
        if (16 % p.MSize || 16 % p.NSize || 16 % p.KSize) continue;
        if (p.MSize * p.NSize * p.KSize <= units->m * units->n * units->k) continue;
        units->m = p.MSize, units->n = p.NSize, units->k = p.KSize;
    }
}

bool probe_bfloat16(const InstanceFunctions& vk, VkPhysicalDevice device,
                    const Extensions& extensions, const Matrices& matrices,
                    const MatrixUnits& units) {
    if (!units.m || !extensions.has(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME)) return false;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR, nullptr, 0, 0, 0};
    VkPhysicalDeviceFeatures2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &bfloat16, {}};
    vk.GetPhysicalDeviceFeatures2(device, &all);
    if (!bfloat16.shaderBFloat16Type || !bfloat16.shaderBFloat16CooperativeMatrix) return false;
    for (const VkCooperativeMatrixPropertiesKHR& p : matrices)
        if (multiplies(p, VK_COMPONENT_TYPE_BFLOAT16_KHR) && p.MSize == units.m &&
            p.NSize == units.n && p.KSize == units.k)
            return true;
    return false;
}

// The largest depth.
uint32_t probe_int8(const Matrices& matrices, const MatrixUnits& units) {
    uint32_t k = 0;
    for (const VkCooperativeMatrixPropertiesKHR& p : matrices) {
        const bool types =
            p.AType == VK_COMPONENT_TYPE_SINT8_KHR && p.BType == VK_COMPONENT_TYPE_SINT8_KHR &&
            p.CType == VK_COMPONENT_TYPE_SINT32_KHR && p.ResultType == VK_COMPONENT_TYPE_SINT32_KHR;
        const bool sizes = units.m && p.MSize == units.m && p.NSize == units.n && p.KSize;
        if (types && sizes && p.scope == VK_SCOPE_SUBGROUP_KHR && !p.saturatingAccumulation &&
            32 % p.KSize == 0)
            k = std::max(k, p.KSize);
    }
    return k;
}

MatrixUnits probe_matrix(const InstanceFunctions& vk, VkPhysicalDevice device,
                         const Extensions& extensions) {
    MatrixUnits units;
    if (!extensions.has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) return units;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, nullptr, 0, 0};
    VkPhysicalDeviceVulkanMemoryModelFeatures model = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, &matrix};
    VkPhysicalDeviceSubgroupSizeControlFeatures control = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, &model};
    VkPhysicalDeviceFeatures2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &control, {}};
    vk.GetPhysicalDeviceFeatures2(device, &all);
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties subgroup = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, &sizes};
    VkPhysicalDeviceProperties2 properties = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroup, {}};
    vk.GetPhysicalDeviceProperties2(device, &properties);
    const bool full = control.subgroupSizeControl && control.computeFullSubgroups &&
                      (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
    if (!matrix.cooperativeMatrix || !model.vulkanMemoryModel || !full) return units;
    const VkPhysicalDeviceLimits& limits = properties.properties.limits;
    const uint32_t invocations = kMatrixSubgroups * subgroup.subgroupSize;
    if (limits.maxComputeSharedMemorySize < kMatrixSharedMemory ||
        limits.maxComputeWorkGroupInvocations < invocations ||
        limits.maxComputeWorkGroupSize[0] < invocations)
        return units;
    const Matrices matrices = list_matrices(vk, device);
    probe_sizes(matrices, &units);
    units.subgroup = subgroup.subgroupSize;
    units.int8_k = probe_int8(matrices, units);
    units.bfloat16 = probe_bfloat16(vk, device, extensions, matrices, units);
    return units;
}

}  // namespace

std::vector<VkExtensionProperties> list_extensions(const InstanceFunctions& vk,
                                                   VkPhysicalDevice device) {
    uint32_t count = 0;
    vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> all(count);
    vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
    all.resize(count);
    return all;
}

std::vector<VkCooperativeMatrixPropertiesKHR> list_matrices(const InstanceFunctions& vk,
                                                            VkPhysicalDevice device) {
    return list_answers(vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR, device,
                        VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
}

ComputeFamily choose_queue_family(const InstanceFunctions& vk, VkPhysicalDevice device) {
    uint32_t count = 0;
    vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
    int best = -1;
    for (uint32_t i = 0; i < count; i++) {
        const VkQueueFlags flags = families[i].queueFlags;
        if (!(flags & VK_QUEUE_COMPUTE_BIT)) continue;
        if (best < 0 || !(flags & VK_QUEUE_GRAPHICS_BIT)) best = (int)i;
        if (!(flags & VK_QUEUE_GRAPHICS_BIT)) break;
    }
    if (best < 0) return {};
    ComputeFamily family;
    family.index = (uint32_t)best;
    family.queues = std::min(kMostQueues, families[best].queueCount);
    family.timestamp_bits = families[best].timestampValidBits;
    return family;
}

GpuFeatures probe_features(const InstanceFunctions& vk, VkPhysicalDevice device) {
    VkPhysicalDevice16BitStorageFeatures storage = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
    VkPhysicalDeviceShaderFloat16Int8Features half = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &storage};
    VkPhysicalDevice8BitStorageFeatures bytes = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, &half};
    VkPhysicalDeviceSamplerYcbcrConversionFeatures ycbcr = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SAMPLER_YCBCR_CONVERSION_FEATURES, &bytes};
    VkPhysicalDeviceBufferDeviceAddressFeatures addresses = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, &ycbcr};
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, &addresses};
    VkPhysicalDeviceFeatures2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &dot, {}};
    vk.GetPhysicalDeviceFeatures2(device, &all);
    VkPhysicalDeviceSubgroupProperties subgroup = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroup, {}};
    vk.GetPhysicalDeviceProperties2(device, &properties);
    const uint32_t version = properties.properties.apiVersion;
    const Extensions extensions(vk, device);
    GpuFeatures features;
    features.unified_memory =
        properties.properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    features.storage16 = storage.storageBuffer16BitAccess;
    // Before Vulkan 1.2 arithmetic is an extension, which the library does not ask for.
    features.float16 = half.shaderFloat16 && version >= VK_API_VERSION_1_2;
    features.int8 = half.shaderInt8 && version >= VK_API_VERSION_1_2;
    features.storage8 = bytes.storageBuffer8BitAccess && version >= VK_API_VERSION_1_2;
    const bool groups = subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
    const VkSubgroupFeatureFlags operations = groups ? subgroup.supportedOperations : 0;
    features.subgroup_sums = operations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    features.subgroup_shuffles = operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    features.vector_lanes = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU &&
                            subgroup.subgroupSize == 8 &&
                            (operations & VK_SUBGROUP_FEATURE_BALLOT_BIT);
    features.dot_products = dot.shaderIntegerDotProduct && version >= VK_API_VERSION_1_3;
    if (features.storage16 && features.float16 && version >= VK_API_VERSION_1_3)
        features.matrix = probe_matrix(vk, device, extensions);
    if (!features.int8) features.matrix.int8_k = 0;
    features.processors = probe_processors(vk, device, extensions);
    features.memory_budget = extensions.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    features.host_alignment = probe_host_alignment(vk, device, extensions);
    if (extensions.has(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME))
        features.for_applications.push_back(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
    if (extensions.has(VK_KHR_SWAPCHAIN_EXTENSION_NAME) && support_VK_KHR_surface)
        features.for_applications.push_back(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
    // Named here because only Android's headers have it.
    const char* const hardware_buffers = "VK_ANDROID_external_memory_android_hardware_buffer";
    const char* const foreign = VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME;
    if (extensions.has(hardware_buffers) && extensions.has(foreign))
        for (const char* name : {hardware_buffers, foreign})
            features.for_applications.push_back(name);
    features.ycbcr = ycbcr.samplerYcbcrConversion;
    features.addresses = addresses.bufferDeviceAddress && version >= VK_API_VERSION_1_2;
    for (const char* name :
         {VK_EXT_GLOBAL_PRIORITY_EXTENSION_NAME, VK_KHR_GLOBAL_PRIORITY_EXTENSION_NAME})
        if (extensions.has(name)) features.priorities = name;
    return features;
}

FeatureRequest::FeatureRequest(const GpuFeatures& features) {
    if (features.memory_budget) extensions_.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    if (features.host_alignment) extensions_.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    if (features.priorities) extensions_.push_back(features.priorities);
    extensions_.insert(extensions_.end(), features.for_applications.begin(),
                       features.for_applications.end());
    if (features.ycbcr) {
        ycbcr_.samplerYcbcrConversion = VK_TRUE;
        chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SAMPLER_YCBCR_CONVERSION_FEATURES, &ycbcr_);
    }
    if (features.addresses) {
        addresses_.bufferDeviceAddress = VK_TRUE;
        chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, &addresses_);
    }
    storage_.storageBuffer16BitAccess = features.storage16;
    chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, &storage_);
    if (features.storage8) {
        storage8_.storageBuffer8BitAccess = VK_TRUE;
        chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, &storage8_);
    }
    if (features.float16 || features.int8) {
        half_.shaderFloat16 = features.float16;
        half_.shaderInt8 = features.int8;
        chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &half_);
    }
    if (features.dot_products) {
        dot_.shaderIntegerDotProduct = VK_TRUE;
        chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, &dot_);
    }
    if (!features.matrix.m) return;
    extensions_.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    memory_model_.vulkanMemoryModel = VK_TRUE;
    subgroup_.subgroupSizeControl = subgroup_.computeFullSubgroups = VK_TRUE;
    matrix_.cooperativeMatrix = VK_TRUE;
    chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, &memory_model_);
    chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, &subgroup_);
    chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, &matrix_);
    if (!features.matrix.bfloat16) return;
    extensions_.push_back(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
    bfloat16_.shaderBFloat16Type = bfloat16_.shaderBFloat16CooperativeMatrix = VK_TRUE;
    chain(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR, &bfloat16_);
}

void FeatureRequest::add_to(VkDeviceCreateInfo* device) const {
    device->pNext = first_;
    device->enabledExtensionCount = (uint32_t)extensions_.size();
    device->ppEnabledExtensionNames = extensions_.data();
}

}  // namespace quoll
