// The Vulkan instance and the devices that it lists.
#ifndef QUOLL_GPU_INSTANCE_H
#define QUOLL_GPU_INSTANCE_H

#include <memory>
#include <vector>

#include "gpu/functions.h"
#include "quoll/gpu.h"

namespace quoll {

class GpuDevice;

// A structure of features or properties, large enough for any of them.
struct QueriedStruct {
    VkStructureType type;
    void* next;
    unsigned char rest[1024];
};

// What Vulkan reports about a device.
struct GpuInfo::Private {
    VkPhysicalDevice handle = VK_NULL_HANDLE;
    VkPhysicalDeviceFeatures features = {};
    VkPhysicalDeviceProperties properties = {};
    VkPhysicalDeviceMemoryProperties memory = {};
    std::vector<VkExtensionProperties> extensions;
    // Chained.
    std::vector<std::unique_ptr<QueriedStruct>> queried_features, queried_properties;
    std::vector<VkCooperativeMatrixPropertiesKHR> matrices;
    std::vector<VkCooperativeMatrixPropertiesNV> matrices_nv;
    std::vector<VkCooperativeMatrixFlexibleDimensionsPropertiesNV> flexible_matrices;
    std::vector<VkCooperativeVectorPropertiesNV> vectors;
};

class GpuInstance {
public:
    // Null, after a message, if `driver_path` cannot be used. Without a loader of Vulkan 1.1: an
    // instance without devices.
    static std::shared_ptr<GpuInstance> create(const char* driver_path);
    ~GpuInstance();

    int count() const { return (int)devices_.size(); }
    const GpuInfo& info(int index) const { return devices_[index].info; }
    VkInstance handle() const { return instance_; }
    VkPhysicalDevice physical(int index) const { return devices_[index].handle; }
    const InstanceFunctions& vk() const { return vk_; }

private:
    struct Physical {
        VkPhysicalDevice handle;
        GpuInfo info;
    };
    bool open(const char* driver_path);
    int enumerate();
    GpuInfo probe(VkPhysicalDevice device) const;
    void probe_limits(const VkPhysicalDeviceProperties& properties, GpuInfo* info) const;
    void probe_memory(const VkPhysicalDeviceMemoryProperties& memory, GpuInfo* info) const;
    void probe_subgroups(VkPhysicalDevice device, GpuInfo* info) const;
    void probe_types(VkPhysicalDevice device, GpuInfo* info) const;
    void probe_matrices(GpuInfo* info) const;
    void query_matrices(const GpuInfo& info, GpuInfo::Private* own) const;
    void query_all(const GpuInfo& info, GpuInfo::Private* own) const;

    void* library_ = nullptr;
    VkInstance instance_ = VK_NULL_HANDLE;
    InstanceFunctions vk_;
    std::vector<Physical> devices_;
};

// Set the pointers and, before there is an instance, the versions of quoll/vulkan_functions.h.
void publish_vulkan_extensions(PFN_vkGetInstanceProcAddr get);
void publish_vulkan_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance);

// Device `index` of get_gpu_info, opened when it is first asked for, and again after it was lost.
// Null, after a message, if there is none or it cannot be opened.
std::shared_ptr<GpuDevice> open_gpu(int index);

}  // namespace quoll

#endif
