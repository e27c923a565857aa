// What a physical device can do, as probed, and how a logical device asks for it.
#ifndef QUOLL_GPU_FEATURES_H
#define QUOLL_GPU_FEATURES_H

#include <vector>

#include "gpu/functions.h"

namespace quoll {

// Products on matrix units (VK_KHR_cooperative_matrix): f16 factors, f32 sums, one per subgroup.
struct MatrixUnits {
    uint32_t m = 0, n = 0, k = 0;  // of one product; divisors of 16. 0: there are none
    uint32_t subgroup = 0;         // invocations of a subgroup
    bool bfloat16 = false;         // bf16 factors too, of the same sizes
    uint32_t int8_k = 0;  // of s8 factors and s32 sums, m and n alike; a divisor of 32. 0: none
};

// Features that shader variants ask for, and extensions that the library uses where they are.
struct GpuFeatures {
    bool storage16 = false;      // 16-bit values in storage buffers
    bool float16 = false;        // arithmetic on them
    bool storage8 = false;       // 8-bit values in storage buffers, for shaders of applications
    bool int8 = false;           // arithmetic on them
    bool dot_products = false;   // of four bytes each
    bool subgroup_sums = false;  // over the invocations of a subgroup
    bool subgroup_shuffles = false;
    // Whether the 8 invocations of a subgroup are the lanes of a processor's vector (software
    // devices), and can take values from one of them.
    bool vector_lanes = false;
    MatrixUnits matrix;
    // Streaming multiprocessors or compute units; 0 where no extension tells.
    uint32_t processors = 0;
    // Whether the driver tells how much of a heap may still be allocated (VK_EXT_memory_budget).
    bool memory_budget = false;
    // Whether the device has no memory of its own: the host writes weights where they stay.
    bool unified_memory = false;
    // The alignment of addresses and sizes of host memory that the device uses in place
    // (VK_EXT_external_memory_host); 0: it takes none.
    uint64_t host_alignment = 0;
    // The extension by which queues have priorities among processes; null: there is none.
    const char* priorities = nullptr;
    // Features and extensions for functions that applications call (VulkanDevice's members):
    // extensions without features, and features of Vulkan 1.1 and 1.2.
    std::vector<const char*> for_applications;
    bool ycbcr = false;
    bool addresses = false;  // of buffers
};
// A queue family for compute, if possible one without graphics, whose work does not wait behind
// that of the screen.
struct ComputeFamily {
    uint32_t index = 0;
    uint32_t queues = 0;          // to use; 0: there is no such family
    uint32_t timestamp_bits = 0;  // that count; 0: its queues write no timestamps
};
ComputeFamily choose_queue_family(const InstanceFunctions& vk, VkPhysicalDevice device);
// All answers to a question about a device; none if the loader does not know the function (null).
// Only to be asked of devices that have its extension.
template <class Answer>
std::vector<Answer> list_answers(VkResult(VKAPI_PTR* ask)(VkPhysicalDevice, uint32_t*, Answer*),
                                 VkPhysicalDevice device, VkStructureType type) {
    uint32_t count = 0;
    if (!ask || ask(device, &count, nullptr) != VK_SUCCESS) return {};
    Answer none = {};
    none.sType = type;
    std::vector<Answer> all(count, none);
    if (ask(device, &count, all.data()) != VK_SUCCESS) return {};
    all.resize(count);
    return all;
}
// What the matrix units of a device with VK_KHR_cooperative_matrix multiply.
std::vector<VkCooperativeMatrixPropertiesKHR> list_matrices(const InstanceFunctions& vk,
                                                            VkPhysicalDevice device);
std::vector<VkExtensionProperties> list_extensions(const InstanceFunctions& vk,
                                                   VkPhysicalDevice device);
GpuFeatures probe_features(const InstanceFunctions& vk, VkPhysicalDevice device);

// The structs and extensions with which vkCreateDevice is asked for features. Must not be copied.
class FeatureRequest {
public:
    explicit FeatureRequest(const GpuFeatures& features);
    FeatureRequest(const FeatureRequest&) = delete;
    FeatureRequest& operator=(const FeatureRequest&) = delete;
    void add_to(VkDeviceCreateInfo* device) const;

private:
    template <class T>
    void chain(VkStructureType type, T* feature) {
        feature->sType = type;
        feature->pNext = first_;
        first_ = feature;
    }
    void* first_ = nullptr;
    std::vector<const char*> extensions_;
    VkPhysicalDevice16BitStorageFeatures storage_ = {};
    VkPhysicalDevice8BitStorageFeatures storage8_ = {};
    VkPhysicalDeviceShaderFloat16Int8Features half_ = {};
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot_ = {};
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model_ = {};
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_ = {};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix_ = {};
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16_ = {};
    VkPhysicalDeviceSamplerYcbcrConversionFeatures ycbcr_ = {};
    VkPhysicalDeviceBufferDeviceAddressFeatures addresses_ = {};
};

}  // namespace quoll

#endif
