#include "gpu/instance.h"

#include <dlfcn.h>
#include <string.h>

#include <algorithm>

#include "gpu/device.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "quoll/vulkan_functions.h"

namespace quoll {

namespace {

PFN_vkGetInstanceProcAddr open_loader(const char* path, void** library) {
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) return nullptr;
    return (PFN_vkGetInstanceProcAddr)dlsym(*library, "vkGetInstanceProcAddr");
}

// The loader's own version; loaders of 1.0 do not have this function.
uint32_t loader_version(PFN_vkGetInstanceProcAddr get) {
    const auto ask = (PFN_vkEnumerateInstanceVersion)get(nullptr, "vkEnumerateInstanceVersion");
    uint32_t version = VK_API_VERSION_1_0;
    if (ask) ask(&version);
    return version;
}

// The loader's extensions by which applications show what they compute.
std::vector<const char*> surface_extensions() {
    std::vector<const char*> names;
    if (support_VK_KHR_surface) names.push_back("VK_KHR_surface");
    if (support_VK_KHR_get_surface_capabilities2)
        names.push_back("VK_KHR_get_surface_capabilities2");
    if (support_VK_KHR_android_surface) names.push_back("VK_KHR_android_surface");
    return names;
}

int type_of(VkPhysicalDeviceType type) {
    switch (type) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
            return 0;
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
            return 1;
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
            return 2;
        default:
            return 3;
    }
}

}  // namespace

std::shared_ptr<GpuInstance> GpuInstance::create(const char* driver_path) {
    std::shared_ptr<GpuInstance> instance(new GpuInstance);
    if (!instance->open(driver_path)) {
        if (driver_path) {
            QUOLL_LOGE("create_gpu_instance: '%s' is no loader of Vulkan 1.1", driver_path);
            return nullptr;
        }
        QUOLL_LOGI("no Vulkan 1.1 loader (libvulkan.so.1): no GPU");
        return instance;
    }
    instance->enumerate();
    return instance;
}

GpuInstance::~GpuInstance() {
    devices_.clear();
    if (instance_) vk_.DestroyInstance(instance_, nullptr);
    if (library_) dlclose(library_);
}

bool GpuInstance::open(const char* driver_path) {
    const auto get = open_loader(driver_path ? driver_path : "libvulkan.so.1", &library_);
    if (!get || loader_version(get) < VK_API_VERSION_1_1) return false;
    publish_vulkan_extensions(get);
    const auto create = (PFN_vkCreateInstance)get(nullptr, "vkCreateInstance");
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pEngineName = "quoll";
    // The newest version whose features are used if a device has them.
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    const std::vector<const char*> surfaces = surface_extensions();
    info.enabledExtensionCount = (uint32_t)surfaces.size();
    info.ppEnabledExtensionNames = surfaces.data();
    if (!create || create(&info, nullptr, &instance_) != VK_SUCCESS) {
        instance_ = VK_NULL_HANDLE;
        return false;
    }
    bool all = true;
#define QUOLL_VK_LOAD(name) all &= (vk_.name = (PFN_vk##name)get(instance_, "vk" #name)) != nullptr;
    QUOLL_VK_INSTANCE_FUNCTIONS(QUOLL_VK_LOAD)
#undef QUOLL_VK_LOAD
#define QUOLL_VK_LOAD(name) vk_.name = (PFN_vk##name)get(instance_, "vk" #name);
    QUOLL_VK_MATRIX_FUNCTIONS(QUOLL_VK_LOAD)
#undef QUOLL_VK_LOAD
    publish_vulkan_functions(get, instance_);
    return all;
}

int GpuInstance::enumerate() {
    uint32_t count = 0;
    VkResult result = vk_.EnumeratePhysicalDevices(instance_, &count, nullptr);
    std::vector<VkPhysicalDevice> handles(count);
    if (result == VK_SUCCESS && count)
        result = vk_.EnumeratePhysicalDevices(instance_, &count, handles.data());
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return gpu_error("list of GPUs", result);
    handles.resize(count);
    for (VkPhysicalDevice handle : handles) {
        const GpuInfo info = probe(handle);
        if (info.api_version() >= VK_API_VERSION_1_1) devices_.push_back({handle, info});
    }
    std::stable_sort(devices_.begin(), devices_.end(), [](const Physical& a, const Physical& b) {
        return a.info.type() < b.info.type();
    });
    for (size_t i = 0; i < devices_.size(); i++) devices_[i].info.index_ = (int)i;
    return kOk;
}

GpuInfo GpuInstance::probe(VkPhysicalDevice device) const {
    const std::shared_ptr<GpuInfo::Private> own = std::make_shared<GpuInfo::Private>();
    own->handle = device;
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    vk_.GetPhysicalDeviceFeatures2(device, &features);
    own->features = features.features;
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    vk_.GetPhysicalDeviceProperties2(device, &properties);
    own->properties = properties.properties;
    vk_.GetPhysicalDeviceMemoryProperties(device, &own->memory);
    own->extensions = list_extensions(vk_, device);
    GpuInfo info;
    info.d = own;
    query_matrices(info, own.get());
    probe_limits(own->properties, &info);
    query_all(info, own.get());
    probe_memory(own->memory, &info);
    probe_subgroups(device, &info);
    probe_types(device, &info);
    probe_matrices(&info);
    const ComputeFamily family = choose_queue_family(vk_, device);
    info.queue_family_ = family.index, info.queue_count_ = family.queues;
    return info;
}

void GpuInstance::probe_limits(const VkPhysicalDeviceProperties& p, GpuInfo* info) const {
    strncpy(info->name_, p.deviceName, sizeof(info->name_) - 1);
    info->type_ = type_of(p.deviceType);
    info->api_version_ = p.apiVersion, info->driver_version_ = p.driverVersion;
    info->vendor_id_ = p.vendorID, info->device_id_ = p.deviceID;
    memcpy(info->cache_uuid_, p.pipelineCacheUUID, sizeof(info->cache_uuid_));
    const VkPhysicalDeviceLimits& limits = p.limits;
    for (int i = 0; i < 3; i++) {
        info->workgroup_count_[i] = limits.maxComputeWorkGroupCount[i];
        info->workgroup_size_[i] = limits.maxComputeWorkGroupSize[i];
    }
    info->image_dimension_[0] = limits.maxImageDimension1D;
    info->image_dimension_[1] = limits.maxImageDimension2D;
    info->image_dimension_[2] = limits.maxImageDimension3D;
    info->max_shared_memory_size_ = limits.maxComputeSharedMemorySize;
    info->max_workgroup_invocations_ = limits.maxComputeWorkGroupInvocations;
    info->max_storage_buffer_range_ = limits.maxStorageBufferRange;
    info->memory_map_alignment_ = limits.minMemoryMapAlignment;
    info->buffer_offset_alignment_ = (size_t)limits.minStorageBufferOffsetAlignment;
    info->non_coherent_atom_size_ = (size_t)limits.nonCoherentAtomSize;
    info->buffer_image_granularity_ = (size_t)limits.bufferImageGranularity;
    info->timestamp_period_ = limits.timestampPeriod;
}

void GpuInstance::probe_memory(const VkPhysicalDeviceMemoryProperties& memory,
                               GpuInfo* info) const {
    for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            info->heap_size_ = std::max<uint64_t>(info->heap_size_, memory.memoryHeaps[i].size);
    const VkMemoryPropertyFlags both =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
        const VkMemoryType& type = memory.memoryTypes[i];
        const bool large = memory.memoryHeaps[type.heapIndex].size > (256u << 20);
        if (info->type_ == 0 && large && (type.propertyFlags & both) == both)
            info->resizable_bar_ = true;
    }
}

void GpuInstance::probe_subgroups(VkPhysicalDevice device, GpuInfo* info) const {
    const bool controls = info->api_version_ >= VK_API_VERSION_1_3;
    const bool has_driver = info->api_version_ >= VK_API_VERSION_1_2;
    VkPhysicalDeviceDriverProperties driver = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties subgroup = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    if (has_driver) subgroup.pNext = &driver;
    if (controls) sizes.pNext = subgroup.pNext, subgroup.pNext = &sizes;
    VkPhysicalDeviceProperties2 properties = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroup, {}};
    vk_.GetPhysicalDeviceProperties2(device, &properties);
    info->subgroup_size_ = subgroup.subgroupSize;
    info->min_subgroup_size_ = controls ? sizes.minSubgroupSize : subgroup.subgroupSize;
    info->max_subgroup_size_ = controls ? sizes.maxSubgroupSize : subgroup.subgroupSize;
    info->max_subgroups_ = sizes.maxComputeWorkgroupSubgroups;
    if (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT)
        info->subgroup_ops_ = subgroup.supportedOperations;
    info->driver_id_ = (uint32_t)driver.driverID;
    strncpy(info->driver_name_, driver.driverName, sizeof(info->driver_name_) - 1);
    if (!controls) return;
    VkPhysicalDeviceSubgroupSizeControlFeatures control = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceFeatures2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &control, {}};
    vk_.GetPhysicalDeviceFeatures2(device, &all);
    info->subgroup_size_control_ = control.subgroupSizeControl;
    info->full_subgroups_ = control.computeFullSubgroups;
}

void GpuInstance::probe_types(VkPhysicalDevice device, GpuInfo* info) const {
    const GpuFeatures used = probe_features(vk_, device);
    info->fp16_storage_ = used.storage16, info->fp16_arithmetic_ = used.float16;
    info->int8_storage_ = used.storage8, info->int8_arithmetic_ = used.int8;
    info->cooperative_matrix_ = used.matrix.m != 0;
    info->processors_ = used.processors;
    VkPhysicalDeviceSamplerYcbcrConversionFeatures ycbcr = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SAMPLER_YCBCR_CONVERSION_FEATURES};
    VkPhysicalDevice16BitStorageFeatures halves = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, &ycbcr};
    VkPhysicalDevice8BitStorageFeatures bytes = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, &halves};
    VkPhysicalDeviceFeatures2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &bytes, {}};
    vk_.GetPhysicalDeviceFeatures2(device, &all);
    info->fp16_uniform_ = used.storage16 && halves.uniformAndStorageBuffer16BitAccess;
    info->int8_uniform_ = used.storage8 && bytes.uniformAndStorageBuffer8BitAccess;
    info->int16_arithmetic_ = all.features.shaderInt16;
    info->small_images_ = all.features.shaderStorageImageExtendedFormats;
    info->ycbcr_ = ycbcr.samplerYcbcrConversion;
}

void GpuInstance::probe_matrices(GpuInfo* info) const {
    // VK_COMPONENT_TYPE_SINT8_KHR, ..._SINT32_KHR and ..._BFLOAT16_KHR, which old headers lack.
    const int s8 = 3, s32 = 5, bf16 = 1000141000;
    for (const VkCooperativeMatrixPropertiesKHR& p : info->of_vulkan().matrices) {
        const bool halves = p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
                            p.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
                            p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
        const auto is = [&](uint32_t m, uint32_t n, uint32_t k) {
            return halves && p.MSize == m && p.NSize == n && p.KSize == k;
        };
        const bool has[] = {is(8, 8, 16),
                            is(16, 8, 8),
                            is(16, 8, 16),
                            is(16, 16, 16),
                            (int)p.AType == s8 && (int)p.ResultType == s32,
                            (int)p.AType == bf16};
        for (int i = 0; i < 6 && p.scope == VK_SCOPE_SUBGROUP_KHR; i++)
            if (has[i]) info->matrices_ |= 1u << i;
    }
}

// ---------------------------------------------------------------- what Vulkan itself says

namespace {

struct Query {
    uint32_t type, minor;
    const char* extension;
};

using Blocks = std::vector<std::unique_ptr<QueriedStruct>>;

// The structures that the device knows, chained.
template <size_t N>
void chain_queries(const Query (&queries)[N], const GpuInfo& info, Blocks* blocks) {
    for (const Query& q : queries) {
        const bool core = q.minor && VK_API_VERSION_MINOR(info.api_version()) >= q.minor;
        if (!core && !info.extension_version(q.extension)) continue;
        blocks->push_back(std::unique_ptr<QueriedStruct>(new QueriedStruct()));
        blocks->back()->type = (VkStructureType)q.type;
        if (blocks->size() > 1) (*blocks)[blocks->size() - 2]->next = blocks->back().get();
    }
}

const void* first_of(const Blocks& blocks) { return blocks.empty() ? nullptr : blocks[0].get(); }

}  // namespace

void GpuInstance::query_matrices(const GpuInfo& info, GpuInfo::Private* own) const {
    if (info.support_VK_KHR_cooperative_matrix()) own->matrices = list_matrices(vk_, own->handle);
    if (info.support_VK_NV_cooperative_matrix())
        own->matrices_nv =
            list_answers(vk_.GetPhysicalDeviceCooperativeMatrixPropertiesNV, own->handle,
                         VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV);
    if (info.support_VK_NV_cooperative_matrix2())
        own->flexible_matrices = list_answers(
            vk_.GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV, own->handle,
            VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV);
    if (info.support_VK_NV_cooperative_vector())
        own->vectors = list_answers(vk_.GetPhysicalDeviceCooperativeVectorPropertiesNV, own->handle,
                                    VK_STRUCTURE_TYPE_COOPERATIVE_VECTOR_PROPERTIES_NV);
}

void GpuInstance::query_all(const GpuInfo& info, GpuInfo::Private* own) const {
#define QUOLL_VK_QUERY(question, name, type, minor, extension) {type, minor, extension},
    static const Query kFeatures[] = {QUOLL_VULKAN_FEATURES(QUOLL_VK_QUERY)};
    static const Query kProperties[] = {QUOLL_VULKAN_PROPERTIES(QUOLL_VK_QUERY)};
#undef QUOLL_VK_QUERY
    chain_queries(kFeatures, info, &own->queried_features);
    chain_queries(kProperties, info, &own->queried_properties);
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    features.pNext = (void*)first_of(own->queried_features);
    vk_.GetPhysicalDeviceFeatures2(own->handle, &features);
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    properties.pNext = (void*)first_of(own->queried_properties);
    vk_.GetPhysicalDeviceProperties2(own->handle, &properties);
}

const void* GpuInfo::query(uint32_t structure_type) const {
    static const QueriedStruct none = {};
    for (const Blocks* blocks : {&of_vulkan().queried_features, &of_vulkan().queried_properties})
        for (const std::unique_ptr<QueriedStruct>& block : *blocks)
            if ((uint32_t)block->type == structure_type) return block.get();
    return &none;
}
const void* GpuInfo::queryExtensionFeatures() const {
    return first_of(of_vulkan().queried_features);
}
const void* GpuInfo::queryExtensionProperties() const {
    return first_of(of_vulkan().queried_properties);
}
const std::vector<VkCooperativeMatrixPropertiesKHR>& GpuInfo::queryCooperativeMatrixSubProperties()
    const {
    return of_vulkan().matrices;
}
const std::vector<VkCooperativeMatrixPropertiesNV>& GpuInfo::queryCooperativeMatrixSubPropertiesNV()
    const {
    return of_vulkan().matrices_nv;
}
const std::vector<VkCooperativeMatrixFlexibleDimensionsPropertiesNV>&
GpuInfo::queryCooperativeMatrixFlexibleDimensionsSubPropertiesNV() const {
    return of_vulkan().flexible_matrices;
}
const std::vector<VkCooperativeVectorPropertiesNV>& GpuInfo::queryCooperativeVectorSubPropertiesNV()
    const {
    return of_vulkan().vectors;
}

void GpuInfo::get_optimal_cooperative_matrix_mnk(int M, int N, int K, int type, int acctype,
                                                 int scope, int& coopmat_M, int& coopmat_N,
                                                 int& coopmat_K, int& coopmat_subgroup_size) const {
    const auto padded = [](int size, uint32_t block) {
        return (double)((size + (int)block - 1) / (int)block) * block;
    };
    coopmat_M = coopmat_N = coopmat_K = 0;
    coopmat_subgroup_size = (int)subgroup_size_;
    double least = 0;
    for (const VkCooperativeMatrixPropertiesKHR& p : of_vulkan().matrices) {
        const bool types = (int)p.AType == type && (int)p.BType == type &&
                           (int)p.CType == acctype && (int)p.ResultType == acctype;
        if (!types || (int)p.scope != scope || !p.MSize || !p.NSize || !p.KSize) continue;
        const double values = padded(M, p.MSize) * padded(N, p.NSize) * padded(K, p.KSize);
        if (coopmat_M && values >= least) continue;
        least = values;
        coopmat_M = (int)p.MSize, coopmat_N = (int)p.NSize, coopmat_K = (int)p.KSize;
    }
}

const GpuInfo::Private& GpuInfo::of_vulkan() const {
    static const Private none;
    return d ? *d : none;
}
VkPhysicalDevice GpuInfo::physicalDevice() const { return of_vulkan().handle; }
const VkPhysicalDeviceFeatures& GpuInfo::physicalDevicefeatures() const {
    return of_vulkan().features;
}
const VkPhysicalDeviceProperties& GpuInfo::physicalDeviceProperties() const {
    return of_vulkan().properties;
}
const VkPhysicalDeviceMemoryProperties& GpuInfo::physicalDeviceMemoryProperties() const {
    return of_vulkan().memory;
}
const std::vector<VkExtensionProperties>& GpuInfo::deviceExtensionProperties() const {
    return of_vulkan().extensions;
}
int GpuInfo::extension_version(const char* name) const {
    for (const VkExtensionProperties& extension : of_vulkan().extensions)
        if (strcmp(extension.extensionName, name) == 0) return (int)extension.specVersion;
    return 0;
}

}  // namespace quoll
