// The GPUs that Vulkan finds. Without a Vulkan loader on the machine, or in a library built without
// QUOLL_VULKAN, there are none.
#ifndef QUOLL_GPU_H
#define QUOLL_GPU_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <memory>
#include <vector>

#include "quoll/platform.h"
#include "quoll/vulkan_names.h"

namespace quoll {

class GpuDevice;
class Mat;
class Option;
class PipelineCache;
class VkAllocator;
class VkCompute;
class VkImageMat;
class VkMat;
struct ShaderInfo;
union vk_specialization_type;

// Device extensions that GpuInfo has a question for: support_VK_KHR_8bit_storage().
#define QUOLL_GPU_EXTENSIONS(X)                           \
    X(VK_KHR_8bit_storage)                                \
    X(VK_KHR_16bit_storage)                               \
    X(VK_KHR_bind_memory2)                                \
    X(VK_KHR_buffer_device_address)                       \
    X(VK_KHR_create_renderpass2)                          \
    X(VK_KHR_cooperative_matrix)                          \
    X(VK_KHR_dedicated_allocation)                        \
    X(VK_KHR_descriptor_update_template)                  \
    X(VK_KHR_device_group)                                \
    X(VK_KHR_driver_properties)                           \
    X(VK_KHR_external_memory)                             \
    X(VK_KHR_get_memory_requirements2)                    \
    X(VK_KHR_maintenance1)                                \
    X(VK_KHR_maintenance2)                                \
    X(VK_KHR_maintenance3)                                \
    X(VK_KHR_multiview)                                   \
    X(VK_KHR_portability_subset)                          \
    X(VK_KHR_push_descriptor)                             \
    X(VK_KHR_robustness2)                                 \
    X(VK_KHR_sampler_ycbcr_conversion)                    \
    X(VK_KHR_shader_bfloat16)                             \
    X(VK_KHR_shader_float16_int8)                         \
    X(VK_KHR_shader_float_controls)                       \
    X(VK_KHR_shader_float_controls2)                      \
    X(VK_KHR_shader_integer_dot_product)                  \
    X(VK_KHR_shader_non_semantic_info)                    \
    X(VK_KHR_shader_subgroup_extended_types)              \
    X(VK_KHR_shader_subgroup_rotate)                      \
    X(VK_KHR_storage_buffer_storage_class)                \
    X(VK_KHR_swapchain)                                   \
    X(VK_KHR_vulkan_memory_model)                         \
    X(VK_KHR_zero_initialize_workgroup_memory)            \
    X(VK_EXT_buffer_device_address)                       \
    X(VK_EXT_descriptor_indexing)                         \
    X(VK_EXT_external_memory_host)                        \
    X(VK_EXT_memory_budget)                               \
    X(VK_EXT_memory_priority)                             \
    X(VK_EXT_queue_family_foreign)                        \
    X(VK_EXT_robustness2)                                 \
    X(VK_EXT_shader_atomic_float)                         \
    X(VK_EXT_shader_atomic_float2)                        \
    X(VK_EXT_shader_float8)                               \
    X(VK_EXT_subgroup_size_control)                       \
    X(VK_AMD_device_coherent_memory)                      \
    X(VK_ANDROID_external_memory_android_hardware_buffer) \
    X(VK_NV_cooperative_matrix)                           \
    X(VK_NV_cooperative_matrix2)                          \
    X(VK_NV_cooperative_vector)

// What a device is and can do. Names are ncnn's; limits are Vulkan's limits of the same names.
class GpuInfo {
public:
    GpuInfo();
    // -1: this describes no device.
    int device_index() const { return index_; }
    const char* device_name() const { return name_; }
    // 0 discrete, 1 integrated, 2 virtual, 3 software. Devices are numbered in this order.
    int type() const { return type_; }
    uint32_t api_version() const { return api_version_; }
    uint32_t driver_version() const { return driver_version_; }
    uint32_t vendor_id() const { return vendor_id_; }
    uint32_t device_id() const { return device_id_; }
    // VkDriverId, and its name; 0 and "" before Vulkan 1.2.
    uint32_t driver_id() const { return driver_id_; }
    const char* driver_name() const { return driver_name_; }
    // 16 bytes; do not write to them.
    uint8_t* pipeline_cache_uuid() const { return const_cast<uint8_t*>(cache_uuid_); }
    // From 0 for a software device to 100, by kind, memory, matrix units and half floats.
    uint32_t rough_score() const;

    // Limits of compute shaders and images, in bytes, groups, invocations and pixels.
    uint32_t max_shared_memory_size() const { return max_shared_memory_size_; }
    uint32_t max_workgroup_count_x() const { return workgroup_count_[0]; }
    uint32_t max_workgroup_count_y() const { return workgroup_count_[1]; }
    uint32_t max_workgroup_count_z() const { return workgroup_count_[2]; }
    uint32_t max_workgroup_invocations() const { return max_workgroup_invocations_; }
    uint32_t max_workgroup_size_x() const { return workgroup_size_[0]; }
    uint32_t max_workgroup_size_y() const { return workgroup_size_[1]; }
    uint32_t max_workgroup_size_z() const { return workgroup_size_[2]; }
    uint32_t max_image_dimension_1d() const { return image_dimension_[0]; }
    uint32_t max_image_dimension_2d() const { return image_dimension_[1]; }
    uint32_t max_image_dimension_3d() const { return image_dimension_[2]; }
    // Bytes.
    size_t memory_map_alignment() const { return memory_map_alignment_; }
    size_t buffer_offset_alignment() const { return buffer_offset_alignment_; }
    size_t non_coherent_atom_size() const { return non_coherent_atom_size_; }
    size_t buffer_image_granularity() const { return buffer_image_granularity_; }
    // Nanoseconds of a timestamp's tick.
    float timestamp_period() const { return timestamp_period_; }

    // Copies run on the compute queues.
    uint32_t compute_queue_family_index() const { return queue_family_; }
    uint32_t transfer_queue_family_index() const { return queue_family_; }
    uint32_t compute_queue_count() const { return queue_count_; }
    uint32_t transfer_queue_count() const { return queue_count_; }
    bool unified_compute_transfer_queue() const { return true; }
    // Whether the host sees more than 256 MB of a discrete device's own memory.
    bool resizable_bar_enabled() const { return resizable_bar_; }

    // Invocations of a subgroup, subgroups of a group, and whether a shader may require them.
    uint32_t subgroup_size() const { return subgroup_size_; }
    uint32_t min_subgroup_size() const { return min_subgroup_size_; }
    uint32_t max_subgroup_size() const { return max_subgroup_size_; }
    uint32_t max_compute_workgroup_subgroups() const { return max_subgroups_; }
    bool support_subgroup_size_control() const { return subgroup_size_control_; }
    bool support_compute_full_subgroups() const { return full_subgroups_; }
    // VkSubgroupFeatureFlags of compute shaders.
    uint32_t support_subgroup_ops() const { return subgroup_ops_; }

    // Driver faults that ncnn's shaders work around; none are known to affect this library.
    bool bug_storage_buffer_no_l1() const { return false; }
    bool bug_corrupted_online_pipeline_cache() const { return false; }
    bool bug_buffer_image_load_zero() const { return false; }
    bool bug_implicit_fp16_arithmetic() const { return false; }

    // The largest blob or weight, in bytes.
    uint64_t max_storage_buffer_range() const { return max_storage_buffer_range_; }
    // Bytes of the largest heap that is the device's own.
    uint64_t heap_size() const { return heap_size_; }
    // Packing several small values into a word of 32 bits needs no feature.
    bool support_fp16_packed() const { return index_ >= 0; }
    bool support_int8_packed() const { return index_ >= 0; }
    bool support_int16_packed() const { return index_ >= 0; }
    // Single small values in storage buffers and in uniform buffers, and arithmetic on them. 8-bit
    // and 16-bit integers are for shaders of applications.
    bool support_fp16_storage() const { return fp16_storage_; }
    bool support_fp16_uniform() const { return fp16_uniform_; }
    bool support_fp16_arithmetic() const { return fp16_arithmetic_; }
    bool support_int8_storage() const { return int8_storage_; }
    bool support_int8_uniform() const { return int8_uniform_; }
    bool support_int8_arithmetic() const { return int8_arithmetic_; }
    bool support_int16_storage() const { return fp16_storage_; }
    bool support_int16_arithmetic() const { return int16_arithmetic_; }
    // Always 0. With use_bf16_storage blobs are bf16 if support_bf16_cooperative_matrix().
    bool support_bf16_packed() const { return false; }
    bool support_bf16_storage() const { return false; }
    // Storage images of 8-bit and 16-bit formats.
    bool support_fp16_image() const { return small_images_; }
    bool support_int8_image() const { return small_images_; }
    bool support_fp_fast_math() const { return support_VK_KHR_shader_float_controls2() != 0; }
    bool support_ycbcr_conversion() const { return ycbcr_; }
    // Whether there are matrix units that this library uses: factors in half floats, in blocks that
    // divide 16 x 16, with fp32 sums.
    bool support_cooperative_matrix() const { return cooperative_matrix_; }
    // What the matrix units multiply: half floats in blocks of M x N x K with fp32 sums, 8-bit
    // integers, bf16.
    bool support_cooperative_matrix_8_8_16() const { return matrices_ >> 0 & 1; }
    bool support_cooperative_matrix_16_8_8() const { return matrices_ >> 1 & 1; }
    bool support_cooperative_matrix_16_8_16() const { return matrices_ >> 2 & 1; }
    bool support_cooperative_matrix_16_16_16() const { return matrices_ >> 3 & 1; }
    bool support_int8_cooperative_matrix() const { return matrices_ >> 4 & 1; }
    bool support_bf16_cooperative_matrix() const { return matrices_ >> 5 & 1; }

    // The version of an extension ("VK_KHR_8bit_storage"), 0 if the device does not have it.
    int extension_version(const char* name) const;
#define QUOLL_GPU_EXTENSION(name) \
    int support_##name() const { return extension_version(#name); }
    QUOLL_GPU_EXTENSIONS(QUOLL_GPU_EXTENSION)
#undef QUOLL_GPU_EXTENSION

    // The number of streaming multiprocessors or compute units; 0 if no extension tells.
    uint32_t processors() const { return processors_; }

#if QUOLL_VULKAN
    // Vulkan's own objects; null or empty if this describes no device.
    VkPhysicalDevice physicalDevice() const;
    VkPhysicalDevice physical_device() const { return physicalDevice(); }
    const VkPhysicalDeviceFeatures& physicalDevicefeatures() const;
    const VkPhysicalDeviceProperties& physicalDeviceProperties() const;
    const VkPhysicalDeviceMemoryProperties& physicalDeviceMemoryProperties() const;
    const VkPhysicalDeviceMemoryProperties& physical_device_memory_properties() const {
        return physicalDeviceMemoryProperties();
    }
    const std::vector<VkExtensionProperties>& deviceExtensionProperties() const;
    // Vulkan's structures of features and properties, for programs that include Vulkan's header:
    // info.query8BitStorageFeatures().storageBuffer8BitAccess. All 0 if the device does not have
    // the extension.
#define QUOLL_GPU_QUERY(question, name, type, ...)            \
    template <class T = name>                                 \
    const T& question() const {                               \
        static_assert(sizeof(T) <= kMostOfQuery, "an array"); \
        return *(const T*)query(type);                        \
    }
    QUOLL_VULKAN_FEATURES(QUOLL_GPU_QUERY)
    QUOLL_VULKAN_PROPERTIES(QUOLL_GPU_QUERY)
#undef QUOLL_GPU_QUERY
    // The first structure of each kind; the others follow by pNext.
    const void* queryExtensionFeatures() const;
    const void* queryExtensionProperties() const;
    // The sizes and types of VK_KHR_cooperative_matrix.
    const std::vector<VkCooperativeMatrixPropertiesKHR>& queryCooperativeMatrixSubProperties()
        const;
    // Those of NVIDIA's extensions: VK_NV_cooperative_matrix, VK_NV_cooperative_matrix2 and
    // VK_NV_cooperative_vector.
    const std::vector<VkCooperativeMatrixPropertiesNV>& queryCooperativeMatrixSubPropertiesNV()
        const;
    const std::vector<VkCooperativeMatrixFlexibleDimensionsPropertiesNV>&
    queryCooperativeMatrixFlexibleDimensionsSubPropertiesNV() const;
    const std::vector<VkCooperativeVectorPropertiesNV>& queryCooperativeVectorSubPropertiesNV()
        const;
    // Of queryCooperativeMatrixSubProperties(), the entry that pads a product of M x N x K least,
    // for types and scope given by Vulkan's numbers: the sizes of its blocks, 0 if there is none,
    // and the invocations of a subgroup.
    void get_optimal_cooperative_matrix_mnk(int M, int N, int K, int type, int acctype, int scope,
                                            int& coopmat_M, int& coopmat_N, int& coopmat_K,
                                            int& coopmat_subgroup_size) const;
#endif

private:
    friend class GpuInstance;
    struct Private;
    const Private& of_vulkan() const;
    enum { kMostOfQuery = 1024 };
    const void* query(uint32_t structure_type) const;
    std::shared_ptr<const Private> d;
    char name_[256], driver_name_[256];
    int type_, index_;
    uint32_t api_version_, driver_version_, vendor_id_, device_id_, driver_id_;
    uint8_t cache_uuid_[16];
    uint32_t subgroup_size_, min_subgroup_size_, max_subgroup_size_, max_subgroups_, subgroup_ops_;
    uint32_t max_shared_memory_size_, max_workgroup_invocations_;
    uint32_t workgroup_count_[3], workgroup_size_[3], image_dimension_[3];
    size_t memory_map_alignment_, buffer_offset_alignment_, non_coherent_atom_size_,
        buffer_image_granularity_;
    float timestamp_period_;
    uint32_t queue_family_, queue_count_;
    uint64_t max_storage_buffer_range_, heap_size_;
    uint32_t processors_;
    uint32_t matrices_;  // a bit for each of the questions above, from support_..._8_8_16 on
    bool subgroup_size_control_, full_subgroups_, resizable_bar_, small_images_, ycbcr_;
    bool fp16_storage_, fp16_uniform_, fp16_arithmetic_, int8_storage_, int8_uniform_,
        int8_arithmetic_, int16_arithmetic_, cooperative_matrix_;
};

// Opens the Vulkan loader (driver_path: a library in place of libvulkan) and looks for devices. The
// functions below do so if it has not been done. Returns 0, also if there is no device; a negative
// code after a message if the named library cannot be opened.
int create_gpu_instance(const char* driver_path = 0);
// Forgets the devices; one that Nets hold lives as long as they do.
void destroy_gpu_instance();
int get_gpu_count();
// The device that the environment variable QUOLL_VULKAN_DEVICE names (a number, or part of a name),
// else the first one; -1 if there is none.
int get_default_gpu_index();
// For an invalid index: an empty info with type 3.
const GpuInfo& get_gpu_info(int device_index = get_default_gpu_index());
#if QUOLL_VULKAN
// Null if there is no loader.
VkInstance get_gpu_instance();
#endif

// The priority of this process's work on a device beside that of other processes.
enum class GpuPriority { low, normal, high, realtime };
// Sets the priority with which the device is opened, so it has to come before its first Net
// (VK_KHR_global_priority). Returns 0, or a negative code after a message if the device is open
// already or knows no priorities. If the system does not grant this process a high priority, the
// device is opened with the normal one, after a warning.
int set_gpu_priority(GpuPriority priority, int device_index = get_default_gpu_index());

// An open device: the VkMats and VkComputes of an application (quoll/command.h) belong to one, and
// so do the Nets that run on the same index.
class VulkanDevice {
public:
    // If the device cannot be opened, there is a message, and this object is not valid: its
    // allocators have no memory.
    explicit VulkanDevice(int device_index = get_default_gpu_index());
    ~VulkanDevice();
    bool is_valid() const;
    int device_index() const { return index_; }
    const GpuInfo info;
    // MB of the device's own memory that may still be allocated: as the driver says
    // (VK_EXT_memory_budget), else the size of the heap.
    uint32_t get_heap_budget() const;
#if QUOLL_VULKAN
    // Null if this is not valid. The library uses and locks its queues.
    VkDevice vkdevice() const;
    // A queue for a program's own submissions, which nothing else uses until it is given back;
    // work that was submitted to it before may still run. Waits if other threads have taken all.
    // Null, after a message, for another family than the library's, and for a thread that has taken
    // all queues itself: it can neither load nor run nets until it gives one back.
    VkQueue acquire_queue(uint32_t queue_family_index) const;
    void reclaim_queue(uint32_t queue_family_index, VkQueue queue) const;
    // The functions that follow make Vulkan's objects for compute shaders in SPIR-V, which the
    // program destroys. Null, or a negative code, after a message. spv_data_size: bytes.
    // local_size: the invocations of a group, whatever the shader says.
    VkShaderModule compile_shader_module(const uint32_t* spv_data, size_t spv_data_size) const;
    VkShaderModule compile_shader_module(const uint32_t* spv_data, size_t spv_data_size,
                                         uint32_t local_size_x, uint32_t local_size_y,
                                         uint32_t local_size_z) const;
    // binding_types as ShaderInfo has them.
    int create_descriptorset_layout(int binding_count, const int* binding_types,
                                    VkDescriptorSetLayout* descriptorset_layout) const;
    // push_constant_count: words of 4 bytes.
    int create_pipeline_layout(int push_constant_count, VkDescriptorSetLayout descriptorset_layout,
                               VkPipelineLayout* pipeline_layout) const;
    // The shader's main(). specializations: constants 0, 1, ... subgroup_size 0: the device
    // chooses.
    int create_pipeline(VkShaderModule shader_module, VkPipelineLayout pipeline_layout,
                        const std::vector<vk_specialization_type>& specializations,
                        uint32_t subgroup_size, VkPipelineCache pipeline_cache,
                        VkPipeline* pipeline) const;
    int create_pipeline(VkShaderModule shader_module, VkPipelineLayout pipeline_layout,
                        const std::vector<vk_specialization_type>& specializations,
                        uint32_t subgroup_size, VkPipeline* pipeline) const {
        return create_pipeline(shader_module, pipeline_layout, specializations, subgroup_size,
                               VkPipelineCache(0), pipeline);
    }
    // For buffers, given one after the other as VkDescriptorBufferInfo.
    int create_descriptor_update_template(
        int binding_count, const int* binding_types, VkDescriptorSetLayout descriptorset_layout,
        VkPipelineLayout pipeline_layout,
        VkDescriptorUpdateTemplate* descriptor_update_template) const;
    // An unfiltered sampler by which an application's shaders may read texels. It belongs to the
    // device.
    const VkSampler* immutable_texelfetch_sampler() const;
    // Functions of extensions, by their own names: vkdev->vkCmdPushDescriptorSetKHR(...). To call
    // them, include quoll/vulkan_functions.h. Null if the device does not have the extension.
#define QUOLL_VULKAN_FUNCTION(name) const name##_function& name;
    QUOLL_VULKAN_DEVICE_FUNCTIONS(QUOLL_VULKAN_FUNCTION)
#undef QUOLL_VULKAN_FUNCTION
#endif
    // A few bytes that may be bound in place of an empty VkMat.
    VkMat get_dummy_buffer() const;
    VkImageMat get_dummy_image() const;
    VkImageMat get_dummy_image_readonly() const;
    // Whether an image of w, h * d, c texels could be made.
    bool shape_support_image_storage(const Mat& shape) const;
    // Types of the device's memory. find_memory_index: the first one in the mask that has all that
    // is required, and most of what is preferred less what is not; 0xffffffff if there is none.
    // Then whether a type has a flag.
    uint32_t find_memory_index(uint32_t memory_type_bits, VkFlags required, VkFlags preferred,
                               VkFlags preferred_not) const;
    bool is_mappable(uint32_t memory_type_index) const;
    bool is_coherent(uint32_t memory_type_index) const;
    bool is_device_local(uint32_t memory_type_index) const;

    // The pipelines of the device.
    const PipelineCache* get_pipeline_cache() const;
    // VkCompute::record_convert with ncnn's name. cast_type_to 0: the type of src, 1: f32, 2: f16,
    // 3: s32, 4: s8, 5: bf16. dst is empty after an error.
    void convert_packing(const VkMat& src, VkMat& dst, int dst_elempack, VkCompute& cmd,
                         const Option& opt) const;
    void convert_packing(const VkMat& src, VkMat& dst, int dst_elempack, int cast_type_to,
                         VkCompute& cmd, const Option& opt) const;

    // Allocators for VkMats, and for copies between these and the host. They belong to the device
    // and serve any number of threads; they need not be given back.
    VkAllocator* acquire_blob_allocator() const;
    VkAllocator* acquire_staging_allocator() const;
    void reclaim_blob_allocator(VkAllocator*) const {}
    void reclaim_staging_allocator(VkAllocator*) const {}

    // For the library. Null if this is not valid.
    std::shared_ptr<GpuDevice> gpu() const;

private:
    VulkanDevice(const VulkanDevice&);
    VulkanDevice& operator=(const VulkanDevice&);
    struct Private;
#if QUOLL_VULKAN
#define QUOLL_VULKAN_FUNCTION(name) k_##name,
    enum Function { QUOLL_VULKAN_DEVICE_FUNCTIONS(QUOLL_VULKAN_FUNCTION) kFunctions };
#undef QUOLL_VULKAN_FUNCTION
    VulkanFunction functions_[kFunctions];
#endif
    const int index_;
    Private* const d;
};

// The device of that index, which is opened once, and again after it was lost; valid until
// destroy_gpu_instance. Null, after a message, if there is none or it cannot be opened.
VulkanDevice* get_gpu_device(int device_index = get_default_gpu_index());

// The compiled pipelines of a device, to be saved for the next process: without them, compiling
// takes most of the time until the first answer. It has all pipelines of the device, whichever Net
// made them, and what was tuned. A cache fits one driver, device and version of the library;
// another one is refused with a message, and pipelines are then compiled as if there were none.
class PipelineCache {
public:
    explicit PipelineCache(const VulkanDevice* vkdev);
    virtual ~PipelineCache();
    // The number of pipelines that Nets have made on the device; these live as long as the device.
    size_t size() const;
    // Adds the cache to what the device has. Returns 0, or a negative code after a message if the
    // cache is damaged or belongs to another driver, device or library.
    int load_cache(const unsigned char* data, size_t size) const;
    int load_cache(const std::vector<unsigned char>& data) const {
        return load_cache(data.data(), data.size());
    }
    int save_cache(std::vector<unsigned char>* data) const;
    int save_cache(std::vector<unsigned char>& data) const { return save_cache(&data); }
    // From now on, when a Net meets sizes for the first time, all tiles and divisions of its
    // products are timed on the device, on zeros, and the best is taken: seconds to minutes for
    // each size. Sizes that were tuned before, also those in a loaded cache, are not timed again.
    void set_tuning(bool on) const;
#if QUOLL_STDIO
    // From, and to, the current position of an open file.
    int load_cache(FILE* file) const;
    int save_cache(FILE* file) const;
    // If there is no such file yet: a negative code without a message.
    int load_cache(const char* path) const;
    // Merges with what the file holds, if that fits, and replaces the file as a whole: a process
    // that reads it meanwhile finds the old one or the new one.
    int save_cache(const char* path) const;
#endif
#if QUOLL_VULKAN
    // Vulkan's objects for a shader of the application, as Pipeline::create makes them. They are
    // made once for the same SPIR-V (spv_data_size: bytes), constants and sizes, and this object
    // keeps them until clear(); they are not saved. Any number of threads may call this. Returns 0,
    // or a negative code after a message.
    int get_pipeline(const uint32_t* spv_data, size_t spv_data_size,
                     const std::vector<vk_specialization_type>& specializations,
                     uint32_t local_size_x, uint32_t local_size_y, uint32_t local_size_z,
                     uint32_t subgroup_size, VkShaderModule* shader_module,
                     VkDescriptorSetLayout* descriptorset_layout, VkPipelineLayout* pipeline_layout,
                     VkPipeline* pipeline, VkDescriptorUpdateTemplate* descriptor_update_template,
                     ShaderInfo& shader_info) const;
#endif
    // Destroys what get_pipeline() made; nothing may be using it any more.
    void clear();

protected:
#if QUOLL_VULKAN
    // Makes all objects except the module, which the caller gives; the caller destroys them.
    int new_pipeline(VkShaderModule shader_module, const ShaderInfo& shader_info,
                     const std::vector<vk_specialization_type>& specializations,
                     uint32_t subgroup_size, VkDescriptorSetLayout* descriptorset_layout,
                     VkPipelineLayout* pipeline_layout, VkPipeline* pipeline,
                     VkDescriptorUpdateTemplate* descriptor_update_template) const;
#endif
    // Whose pipelines they are.
    const VulkanDevice* const vkdev;

private:
    PipelineCache(const PipelineCache&);
    PipelineCache& operator=(const PipelineCache&);
    struct Private;
    Private* const d;
};

}  // namespace quoll

#endif
