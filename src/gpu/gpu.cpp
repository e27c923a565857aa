#include "quoll/gpu.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "quoll/log.h"
#include "quoll/status.h"
#if QUOLL_VULKAN
#include "gpu/device.h"
#endif

namespace quoll {

GpuInfo::GpuInfo()
    : name_(),
      driver_name_(),
      type_(3),
      index_(-1),
      api_version_(0),
      driver_version_(0),
      vendor_id_(0),
      device_id_(0),
      driver_id_(0),
      cache_uuid_(),
      subgroup_size_(0),
      min_subgroup_size_(0),
      max_subgroup_size_(0),
      max_subgroups_(0),
      subgroup_ops_(0),
      max_shared_memory_size_(0),
      max_workgroup_invocations_(0),
      workgroup_count_(),
      workgroup_size_(),
      image_dimension_(),
      memory_map_alignment_(0),
      buffer_offset_alignment_(0),
      non_coherent_atom_size_(0),
      buffer_image_granularity_(0),
      timestamp_period_(0.f),
      queue_family_(0),
      queue_count_(0),
      max_storage_buffer_range_(0),
      heap_size_(0),
      processors_(0),
      matrices_(0),
      subgroup_size_control_(false),
      full_subgroups_(false),
      resizable_bar_(false),
      small_images_(false),
      ycbcr_(false),
      fp16_storage_(false),
      fp16_uniform_(false),
      fp16_arithmetic_(false),
      int8_storage_(false),
      int8_uniform_(false),
      int8_arithmetic_(false),
      int16_arithmetic_(false),
      cooperative_matrix_(false) {}

uint32_t GpuInfo::rough_score() const {
    if (type_ == 3) return 0;
    const uint32_t of_kind = type_ == 0 ? 50 : 5;
    const uint32_t gigabytes = (uint32_t)std::min<uint64_t>(heap_size_ >> 30, 32);
    return of_kind + gigabytes + (cooperative_matrix_ ? 15 : 0) + (fp16_arithmetic_ ? 3 : 0);
}

#if QUOLL_VULKAN

namespace {

// Never destroyed: at exit, drivers may be gone before our statics.
struct Global {
    std::mutex mutex;
    std::shared_ptr<GpuInstance> instance;
    std::vector<std::shared_ptr<GpuDevice>> devices;
    std::vector<GpuPriority> priorities;
    // The devices of get_gpu_device, lost ones too, since somebody may still have them.
    std::mutex opening;
    std::vector<std::unique_ptr<VulkanDevice>> opened;
};
Global& global() {
    static Global* const g = new Global;
    return *g;
}

// With the mutex held.
GpuInstance* instance_of(Global& g, const char* driver_path = nullptr) {
    if (!g.instance) {
        g.instance = GpuInstance::create(driver_path);
        g.devices.assign(g.instance ? g.instance->count() : 0, nullptr);
        g.priorities.assign(g.devices.size(), GpuPriority::normal);
    }
    return g.instance.get();
}

int no_such_gpu(int index, int count) {
    QUOLL_LOGE("GPU %d: there are %d", index, count);
    return kError;
}

}  // namespace

int create_gpu_instance(const char* driver_path) {
    Global& g = global();
    std::lock_guard<std::mutex> lock(g.mutex);
    return instance_of(g, driver_path) ? (int)kOk : (int)kError;
}

VulkanDevice* get_gpu_device(int device_index) {
    Global& g = global();
    std::lock_guard<std::mutex> lock(g.opening);
    for (const std::unique_ptr<VulkanDevice>& device : g.opened)
        if (device->device_index() == device_index && !device->gpu()->lost()) return device.get();
    std::unique_ptr<VulkanDevice> device(new VulkanDevice(device_index));
    if (!device->is_valid()) return nullptr;
    g.opened.push_back(std::move(device));
    return g.opened.back().get();
}

void destroy_gpu_instance() {
    Global& g = global();
    {
        std::lock_guard<std::mutex> lock(g.opening);
        g.opened.clear();
    }
    std::lock_guard<std::mutex> lock(g.mutex);
    g.devices.clear();
    g.instance.reset();
}

int get_gpu_count() {
    Global& g = global();
    std::lock_guard<std::mutex> lock(g.mutex);
    const GpuInstance* instance = instance_of(g);
    return instance ? instance->count() : 0;
}

const GpuInfo& get_gpu_info(int device_index) {
    static const GpuInfo none;
    Global& g = global();
    std::lock_guard<std::mutex> lock(g.mutex);
    const GpuInstance* instance = instance_of(g);
    const bool there = instance && device_index >= 0 && device_index < instance->count();
    return there ? instance->info(device_index) : none;
}

VkInstance get_gpu_instance() {
    Global& g = global();
    std::lock_guard<std::mutex> lock(g.mutex);
    const GpuInstance* instance = instance_of(g);
    return instance ? instance->handle() : VK_NULL_HANDLE;
}

int set_gpu_priority(GpuPriority priority, int device_index) {
    Global& g = global();
    std::lock_guard<std::mutex> lock(g.mutex);
    const GpuInstance* instance = instance_of(g);
    const int count = instance ? instance->count() : 0;
    if (device_index < 0 || device_index >= count) return no_such_gpu(device_index, count);
    const char* name = instance->info(device_index).device_name();
    const std::shared_ptr<GpuDevice>& device = g.devices[device_index];
    if (device && !device->lost()) {
        QUOLL_LOGE("set_gpu_priority: %s is open already", name);
        return kError;
    }
    if (!probe_features(instance->vk(), instance->physical(device_index)).priorities) {
        QUOLL_LOGE("set_gpu_priority: %s has no VK_KHR_global_priority", name);
        return kError;
    }
    g.priorities[device_index] = priority;
    return kOk;
}

std::shared_ptr<GpuDevice> open_gpu(int index) {
    Global& g = global();
    std::lock_guard<std::mutex> lock(g.mutex);
    const GpuInstance* instance = instance_of(g);
    const int count = instance ? instance->count() : 0;
    if (index < 0 || index >= count) {
        no_such_gpu(index, count);
        return nullptr;
    }
    std::shared_ptr<GpuDevice>& device = g.devices[index];
    if (!device || device->lost()) device = GpuDevice::open(g.instance, index, g.priorities[index]);
    return device;
}

#else

int GpuInfo::extension_version(const char*) const { return 0; }
int set_gpu_priority(GpuPriority, int device_index) {
    QUOLL_LOGE("GPU %d: there are %d", device_index, 0);
    return kError;
}
int create_gpu_instance(const char*) { return kOk; }
void destroy_gpu_instance() {}
int get_gpu_count() { return 0; }
const GpuInfo& get_gpu_info(int) {
    static const GpuInfo none;
    return none;
}

#endif

int get_default_gpu_index() {
    const int count = get_gpu_count();
    const char* wanted = getenv("QUOLL_VULKAN_DEVICE");
    if (!wanted || !*wanted || count == 0) return count > 0 ? 0 : -1;
    char* end = nullptr;
    const long index = strtol(wanted, &end, 10);
    if (!*end && index >= 0 && index < count) return (int)index;
    for (int i = 0; *end && i < count; i++)
        if (strstr(get_gpu_info(i).device_name(), wanted)) return i;
    QUOLL_LOGW("QUOLL_VULKAN_DEVICE=%s: no such device, taking %s", wanted,
               get_gpu_info(0).device_name());
    return 0;
}

}  // namespace quoll
