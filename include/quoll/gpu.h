// The GPUs that Vulkan finds. Without a Vulkan loader on the machine, or in a library built without
// QUOLL_VULKAN, there are none.
#ifndef QUOLL_GPU_H
#define QUOLL_GPU_H

#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <vector>

#include "quoll/platform.h"

namespace quoll {

class GpuDevice;
class VkAllocator;

// What a device is and can do, as probed. Names are ncnn's.
class GpuInfo {
public:
    GpuInfo();
    const char* device_name() const { return name_; }
    // 0 discrete, 1 integrated, 2 virtual, 3 software; the order in which devices are numbered.
    int type() const { return type_; }
    uint32_t api_version() const { return api_version_; }
    uint32_t driver_version() const { return driver_version_; }
    uint32_t vendor_id() const { return vendor_id_; }
    uint32_t device_id() const { return device_id_; }
    uint32_t subgroup_size() const { return subgroup_size_; }
    uint32_t max_shared_memory_size() const { return max_shared_memory_size_; }
    uint32_t max_workgroup_invocations() const { return max_workgroup_invocations_; }
    // Bytes that one blob or weight may have.
    uint64_t max_storage_buffer_range() const { return max_storage_buffer_range_; }
    // Bytes of the largest heap that is the device's own.
    uint64_t heap_size() const { return heap_size_; }
    bool support_fp16_storage() const { return fp16_storage_; }
    bool support_fp16_arithmetic() const { return fp16_arithmetic_; }
    // 8-bit values in buffers, for shaders of applications.
    bool support_int8_storage() const { return int8_storage_; }
    bool support_int8_arithmetic() const { return int8_arithmetic_; }
    // Matrix units that multiply 16 x 16 halves with fp32 sums.
    bool support_cooperative_matrix() const { return cooperative_matrix_; }
    // Streaming multiprocessors or compute units; 0 where no extension tells.
    uint32_t processors() const { return processors_; }

private:
    friend class GpuInstance;
    char name_[256];
    int type_;
    uint32_t api_version_, driver_version_, vendor_id_, device_id_;
    uint32_t subgroup_size_, max_shared_memory_size_, max_workgroup_invocations_;
    uint64_t max_storage_buffer_range_, heap_size_;
    uint32_t processors_;
    bool fp16_storage_, fp16_arithmetic_, int8_storage_, int8_arithmetic_, cooperative_matrix_;
};

// Opens the Vulkan loader (driver_path: another library than libvulkan) and looks for devices. The
// functions below do so when it has not been done. 0, also where there is no device; a negative
// code after a message if the named library cannot be opened.
int create_gpu_instance(const char* driver_path = 0);
// Forgets the devices; those that Nets hold live as long as these.
void destroy_gpu_instance();
int get_gpu_count();
// The device of the environment's QUOLL_VULKAN_DEVICE (a number, or a part of a name), else the
// first; -1 if there is none.
int get_default_gpu_index();
// Of an index that is none: an empty info with type 3.
const GpuInfo& get_gpu_info(int device_index = get_default_gpu_index());

// What the work of this process is worth on a device beside that of others.
enum class GpuPriority { low, normal, high, realtime };
// For the device when it is opened, so before its first Net (VK_KHR_global_priority). 0; a negative
// code after a message if it is open already or knows no priorities. A system may keep the high
// ones for some processes: then the device is opened with the normal one, after a warning.
int set_gpu_priority(GpuPriority priority, int device_index = get_default_gpu_index());

// A device that was opened: what the VkMats and VkComputes of an application belong to
// (quoll/command.h), and with them the Nets that run on the same index.
class VulkanDevice {
public:
    // One that cannot be opened, after a message, is not valid: its allocators have no memory.
    explicit VulkanDevice(int device_index = get_default_gpu_index());
    ~VulkanDevice();
    bool is_valid() const;
    int device_index() const { return index_; }
    const GpuInfo info;
    // MB of the device's own memory that may still be allocated: as the driver says
    // (VK_EXT_memory_budget), else the size of the heap.
    uint32_t get_heap_budget() const;

    // Memory for VkMats, and for copies between these and the host. They are the device's own and
    // serve any number of threads; what is taken need not be given back.
    VkAllocator* acquire_blob_allocator() const;
    VkAllocator* acquire_staging_allocator() const;
    void reclaim_blob_allocator(VkAllocator*) const {}
    void reclaim_staging_allocator(VkAllocator*) const {}

    // For the library: null if it is not valid.
    std::shared_ptr<GpuDevice> gpu() const;

private:
    VulkanDevice(const VulkanDevice&);
    VulkanDevice& operator=(const VulkanDevice&);
    struct Private;
    const int index_;
    Private* const d;
};

// Opened once, and anew after it was lost; valid until destroy_gpu_instance. Null, after a message,
// if there is none or it cannot be opened.
VulkanDevice* get_gpu_device(int device_index = get_default_gpu_index());

// The pipelines of a device as its driver compiled them, so that the next process need not: cold,
// that is most of the time until the first answer. All pipelines of the device, whichever Net made
// them. A cache fits one driver, device and version of the library; another is refused with a
// message, and pipelines are then compiled as if there were none. It also holds what was tuned.
class PipelineCache {
public:
    explicit PipelineCache(const VulkanDevice* vkdev);
    // Adds to what the device has. 0; a negative code after a message if it is damaged or of
    // another driver, device or library.
    int load_cache(const unsigned char* data, size_t size) const;
    int load_cache(const std::vector<unsigned char>& data) const {
        return load_cache(data.data(), data.size());
    }
    int save_cache(std::vector<unsigned char>* data) const;
    int save_cache(std::vector<unsigned char>& data) const { return save_cache(&data); }
    // From now on, when a Net meets sizes for the first time, all tiles and divisions of its
    // products are timed on the device, on zeros, and the best taken: seconds to minutes each.
    // Sizes that were tuned before, also those of a cache that was loaded, are not timed again.
    void set_tuning(bool on) const;
#if QUOLL_STDIO
    // A file that is not there yet is a negative code without a message.
    int load_cache(const char* path) const;
    // Together with what a file that fits holds, which is replaced as a whole: who reads it at the
    // same time finds the one or the other.
    int save_cache(const char* path) const;
#endif

private:
    const VulkanDevice* const vkdev_;
};

}  // namespace quoll

#endif
