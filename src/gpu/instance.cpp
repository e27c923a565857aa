#include "gpu/instance.h"

#include <dlfcn.h>
#include <string.h>

#include <algorithm>

#include "gpu/device.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

PFN_vkGetInstanceProcAddr open_loader(const char* path, void** library) {
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) return nullptr;
    return (PFN_vkGetInstanceProcAddr)dlsym(*library, "vkGetInstanceProcAddr");
}

// The loader's own version; 1.0 loaders lack the question.
uint32_t loader_version(PFN_vkGetInstanceProcAddr get) {
    const auto ask = (PFN_vkEnumerateInstanceVersion)get(nullptr, "vkEnumerateInstanceVersion");
    uint32_t version = VK_API_VERSION_1_0;
    if (ask) ask(&version);
    return version;
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
    const auto create = (PFN_vkCreateInstance)get(nullptr, "vkCreateInstance");
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pEngineName = "quoll";
    // The newest version whose features are used where a device has them.
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    if (!create || create(&info, nullptr, &instance_) != VK_SUCCESS) {
        instance_ = VK_NULL_HANDLE;
        return false;
    }
    bool all = true;
#define QUOLL_VK_LOAD(name) all &= (vk_.name = (PFN_vk##name)get(instance_, "vk" #name)) != nullptr;
    QUOLL_VK_INSTANCE_FUNCTIONS(QUOLL_VK_LOAD)
#undef QUOLL_VK_LOAD
    vk_.matrix_properties = (PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)get(
        instance_, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
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
    return kOk;
}

GpuInfo GpuInstance::probe(VkPhysicalDevice device) const {
    VkPhysicalDeviceSubgroupProperties subgroup = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroup, {}};
    vk_.GetPhysicalDeviceProperties2(device, &all);
    const VkPhysicalDeviceProperties& p = all.properties;
    GpuInfo info;
    strncpy(info.name_, p.deviceName, sizeof(info.name_) - 1);
    info.type_ = type_of(p.deviceType);
    info.api_version_ = p.apiVersion, info.driver_version_ = p.driverVersion;
    info.vendor_id_ = p.vendorID, info.device_id_ = p.deviceID;
    info.subgroup_size_ = subgroup.subgroupSize;
    info.max_shared_memory_size_ = p.limits.maxComputeSharedMemorySize;
    info.max_workgroup_invocations_ = p.limits.maxComputeWorkGroupInvocations;
    info.max_storage_buffer_range_ = p.limits.maxStorageBufferRange;
    VkPhysicalDeviceMemoryProperties memory;
    vk_.GetPhysicalDeviceMemoryProperties(device, &memory);
    for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            info.heap_size_ = std::max<uint64_t>(info.heap_size_, memory.memoryHeaps[i].size);
    const GpuFeatures features = probe_features(vk_, device);
    info.fp16_storage_ = features.storage16;
    info.fp16_arithmetic_ = features.float16;
    info.int8_storage_ = features.storage8, info.int8_arithmetic_ = features.int8;
    info.cooperative_matrix_ = features.matrix.m != 0;
    info.processors_ = features.processors;
    return info;
}

}  // namespace quoll
