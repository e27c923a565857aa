#include "gpu/device.h"

#include <string.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "gpu/pipeline.h"
#include "gpu/tuning.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// The system wakes a thread 25 to 45 us after the end of a submission (NVIDIA's driver 580). So a
// thread that waits for a discrete device polls for this long before it sleeps.
const auto kAwake = std::chrono::milliseconds(2);
// How often a thread that may not submit yet looks for submissions that have ended.
const auto kBetweenLooks = std::chrono::microseconds(100);

const char* result_name(VkResult result) {
    switch (result) {
        case VK_ERROR_OUT_OF_HOST_MEMORY:
            return "out of host memory";
        case VK_ERROR_OUT_OF_DEVICE_MEMORY:
            return "out of device memory";
        case VK_ERROR_OUT_OF_POOL_MEMORY:
            return "out of pool memory";
        case VK_ERROR_DEVICE_LOST:
            return "device lost";
        case VK_ERROR_INITIALIZATION_FAILED:
            return "initialisation failed";
        case VK_ERROR_FEATURE_NOT_PRESENT:
            return "feature not present";
        case VK_ERROR_EXTENSION_NOT_PRESENT:
            return "extension not present";
        case VK_ERROR_TOO_MANY_OBJECTS:
            return "too many objects";
        case VK_TIMEOUT:
            return "timeout";
        default:
            return "error";
    }
}

}  // namespace

int gpu_error(const char* what, VkResult result) {
    QUOLL_LOGE("Vulkan: %s: %s (%d)", what, result_name(result), (int)result);
    const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY ||
                        result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                        result == VK_ERROR_OUT_OF_POOL_MEMORY;
    return memory ? (int)kOutOfMemory : (int)kError;
}

std::shared_ptr<GpuDevice> GpuDevice::open(std::shared_ptr<GpuInstance> instance, int index,
                                           GpuPriority priority) {
    std::shared_ptr<GpuDevice> device(new GpuDevice);
    device->instance_ = instance;
    device->index_ = index;
    if (!device->create(instance->vk(), instance->physical(index), priority)) return nullptr;
    device->pipelines_.reset(new PipelineStore(*device));
    device->tuning_.reset(new TuningTable);
    if (!device->pipelines_->open()) return nullptr;
    return device;
}

struct GpuDevice::Queue {
    VkQueue handle;
    std::mutex mutex;
    bool taken = false;  // by an application,
    std::thread::id by;  // in this thread
    int users = 0;       // threads of the library that submit
};

GpuDevice::~GpuDevice() {
    if (device_ && vk_.DeviceWaitIdle) vk_.DeviceWaitIdle(device_);
    pipelines_.reset();
    for (VkFence fence : fences_) vk_.DestroyFence(device_, fence, nullptr);
    for (const Commands& c : commands_) vk_.DestroyCommandPool(device_, c.pool, nullptr);
    if (device_ && vk_.DestroyDevice) vk_.DestroyDevice(device_, nullptr);
}

VkResult GpuDevice::take_fence(VkFence* fence) const {
    {
        std::lock_guard<std::mutex> lock(flight_);
        if (!fences_.empty()) {
            *fence = fences_.back();
            fences_.pop_back();
            return VK_SUCCESS;
        }
    }
    const VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    return vk_.CreateFence(device_, &info, nullptr, fence);
}

void GpuDevice::give_back_fence(VkFence fence) const {
    std::lock_guard<std::mutex> lock(flight_);
    if (fence) fences_.push_back(fence);
}

VkResult GpuDevice::take_commands(Commands* commands) const {
    {
        std::lock_guard<std::mutex> lock(flight_);
        if (!commands_.empty()) {
            *commands = std::move(commands_.back());
            commands_.pop_back();
            return VK_SUCCESS;
        }
    }
    VkCommandPoolCreateInfo info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    info.queueFamilyIndex = family_;
    return vk_.CreateCommandPool(device_, &info, nullptr, &commands->pool);
}

void GpuDevice::give_back_commands(const Commands& commands) const {
    std::lock_guard<std::mutex> lock(flight_);
    if (commands.pool) commands_.push_back(commands);
}

VkResult GpuDevice::create_device(const InstanceFunctions& vk, VkPhysicalDevice physical,
                                  GpuPriority priority) {
    const std::vector<float> priorities(queue_count_, 1.f);
    VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = family_, queue.queueCount = queue_count_;
    queue.pQueuePriorities = priorities.data();
    const VkQueueGlobalPriorityKHR levels[] = {
        VK_QUEUE_GLOBAL_PRIORITY_LOW_KHR, VK_QUEUE_GLOBAL_PRIORITY_MEDIUM_KHR,
        VK_QUEUE_GLOBAL_PRIORITY_HIGH_KHR, VK_QUEUE_GLOBAL_PRIORITY_REALTIME_KHR};
    VkDeviceQueueGlobalPriorityCreateInfoKHR among_processes = {
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_GLOBAL_PRIORITY_CREATE_INFO_KHR};
    among_processes.globalPriority = levels[(int)priority];
    if (priority != GpuPriority::normal) queue.pNext = &among_processes;
    const FeatureRequest request(features_);
    VkDeviceCreateInfo device = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    request.add_to(&device);
    device.queueCreateInfoCount = 1, device.pQueueCreateInfos = &queue;
    const VkResult result = vk.CreateDevice(physical, &device, nullptr, &device_);
    if (result != VK_SUCCESS) device_ = VK_NULL_HANDLE;
    return result;
}

bool GpuDevice::create(const InstanceFunctions& vk, VkPhysicalDevice physical,
                       GpuPriority priority) {
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    vk.GetPhysicalDeviceProperties2(physical, &properties);
    limits_ = properties.properties.limits;
    memcpy(cache_uuid_, properties.properties.pipelineCacheUUID, VK_UUID_SIZE);
    vk.GetPhysicalDeviceMemoryProperties(physical, &memory_);
    features_ = probe_features(vk, physical);
    if (!choose_queue_family(vk, physical, &family_, &queue_count_)) {
        QUOLL_LOGE("Vulkan: %s has no queue for compute", info().device_name());
        return false;
    }
    VkResult result = create_device(vk, physical, priority);
    if (result == VK_ERROR_NOT_PERMITTED_KHR) {
        QUOLL_LOGW("Vulkan: the system grants no other priority than the normal one on %s",
                   info().device_name());
        result = create_device(vk, physical, GpuPriority::normal);
    }
    if (result == VK_SUCCESS) return load(vk);
    gpu_error(info().device_name(), result);
    return false;
}

bool GpuDevice::load(const InstanceFunctions& vk) {
    const char* missing = nullptr;
#define QUOLL_VK_LOAD(name)                                             \
    vk_.name = (PFN_vk##name)vk.GetDeviceProcAddr(device_, "vk" #name); \
    if (!vk_.name) missing = "vk" #name;
    QUOLL_VK_DEVICE_FUNCTIONS(QUOLL_VK_LOAD)
#undef QUOLL_VK_LOAD
    if (features_.host_alignment)
        vk_.host_memory_types = (PFN_vkGetMemoryHostPointerPropertiesEXT)vk.GetDeviceProcAddr(
            device_, "vkGetMemoryHostPointerPropertiesEXT");
    if (missing) {
        QUOLL_LOGE("Vulkan: %s has no %s", info().device_name(), missing);
        return false;
    }
    queues_.reset(new Queue[queue_count_]);
    for (uint32_t i = 0; i < queue_count_; i++)
        vk_.GetDeviceQueue(device_, family_, i, &queues_[i].handle);
    return true;
}

size_t GpuDevice::alignment() const {
    return std::max<size_t>(16, (size_t)limits_.minStorageBufferOffsetAlignment);
}

bool GpuDevice::has_budgets(VkPhysicalDeviceMemoryBudgetPropertiesEXT* budget) const {
    if (!features_.memory_budget) return false;
    *budget = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 all = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, budget, {}};
    instance_->vk().GetPhysicalDeviceMemoryProperties2(instance_->physical(index_), &all);
    return true;
}

uint64_t GpuDevice::memory_budget() const {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    if (!has_budgets(&budget)) return info().heap_size();
    uint64_t most = 0;
    for (uint32_t i = 0; i < memory_.memoryHeapCount; i++) {
        if (!(memory_.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
        const uint64_t used = budget.heapUsage[i], whole = budget.heapBudget[i];
        most = std::max<uint64_t>(most, whole > used ? whole - used : 0);
    }
    return most;
}

uint64_t GpuDevice::budget_of(int type) const {
    const uint32_t heap = memory_.memoryTypes[type].heapIndex;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    if (!(memory_.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) ||
        !has_budgets(&budget))
        return UINT64_MAX;
    const uint64_t used = budget.heapUsage[heap], whole = budget.heapBudget[heap];
    return whole > used ? whole - used : 0;
}

bool GpuDevice::host_visible(int type) const {
    const VkMemoryPropertyFlags needed =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    return (memory_.memoryTypes[type].propertyFlags & needed) == needed;
}

int GpuDevice::memory_type(MemoryUse use, uint32_t type_bits) const {
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    const bool by_host = use == MemoryUse::kUpload || use == MemoryUse::kDownload;
    const bool shared = use == MemoryUse::kWeights && features_.unified_memory;
    int best = -1, best_score = -1;
    for (uint32_t i = 0; i < memory_.memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = memory_.memoryTypes[i].propertyFlags;
        if (!(type_bits >> i & 1) || (by_host && !host_visible((int)i))) continue;
        int score = 0;
        if (use != MemoryUse::kDownload && (flags & local)) score += 4;
        if (use == MemoryUse::kDownload && (flags & cached)) score += 4;
        if (shared && host_visible((int)i)) score += 2;
        if (!by_host && !shared && !(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) score += 1;
        if (score > best_score) best = (int)i, best_score = score;
    }
    return best;
}

bool GpuDevice::is_local(MemoryUse use) const {
    const int type = memory_type(use, UINT32_MAX);
    return type >= 0 &&
           (memory_.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
}

int GpuDevice::error(const char* what, VkResult result) const {
    if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
    return gpu_error(what, result);
}

uint64_t GpuDevice::submissions() const {
    std::lock_guard<std::mutex> lock(flight_);
    return submissions_;
}

int GpuDevice::highest_in_flight() const {
    std::lock_guard<std::mutex> lock(flight_);
    const int highest = highest_in_flight_;
    highest_in_flight_ = in_flight();
    return highest;
}

GpuDevice::Queue* GpuDevice::free_queue(std::unique_lock<std::mutex>& lock) const {
    for (;;) {
        bool own = true;
        for (uint32_t i = 0; i < queue_count_; i++) {
            Queue& queue = queues_[next_queue_++ % queue_count_];
            if (!queue.taken) return &queue;
            own = own && queue.by == std::this_thread::get_id();
        }
        if (own) break;
        given_back_.wait(lock);
    }
    QUOLL_LOGE("Vulkan: this thread has taken all queues of %s (%u), and given none back",
               info().device_name(), queue_count_);
    return nullptr;
}

VkQueue GpuDevice::acquire_queue() const {
    std::unique_lock<std::mutex> lock(taking_);
    Queue* const queue = free_queue(lock);
    if (!queue) return VK_NULL_HANDLE;
    queue->taken = true, queue->by = std::this_thread::get_id();
    while (queue->users > 0) given_back_.wait(lock);
    return queue->handle;
}

void GpuDevice::reclaim_queue(VkQueue handle) const {
    {
        std::lock_guard<std::mutex> lock(taking_);
        for (uint32_t i = 0; i < queue_count_; i++)
            if (queues_[i].handle == handle) queues_[i].taken = false;
    }
    given_back_.notify_all();
}

int GpuDevice::run(const std::vector<VkCommandBuffer>& commands, VkFence fence, int most) const {
    QUOLL_RETURN_IF_ERROR(begin(commands, fence, most));
    return finish(fence);
}

int GpuDevice::run_each(const std::vector<VkCommandBuffer>& commands, VkFence fence,
                        int most) const {
    for (VkCommandBuffer part : commands) QUOLL_RETURN_IF_ERROR(run({part}, fence, most));
    return kOk;
}

// With flight_ held: whether anything had ended that nobody has waited for yet.
bool GpuDevice::forget_ended() const {
    const auto ended = [&](VkFence fence) {
        return vk_.GetFenceStatus(device_, fence) != VK_NOT_READY;
    };
    const size_t before = in_flight_.size();
    in_flight_.erase(std::remove_if(in_flight_.begin(), in_flight_.end(), ended), in_flight_.end());
    return in_flight_.size() < before;
}

// All submissions on the device may be of this thread, which waits for them only after it has
// submitted this one: so what has ended is looked for.
void GpuDevice::wait_for_turn(int most) const {
    std::unique_lock<std::mutex> lock(flight_);
    while (most > 0 && in_flight() >= most)
        if (!forget_ended()) ended_.wait_for(lock, kBetweenLooks);
    submitting_++, submissions_++;
    highest_in_flight_ = std::max(highest_in_flight_, in_flight());
}

// A fence is only looked at while nobody submits it.
void GpuDevice::note_submitted(VkFence fence, VkResult result) const {
    std::lock_guard<std::mutex> lock(flight_);
    submitting_--;
    if (result == VK_SUCCESS) in_flight_.push_back(fence);
}

void GpuDevice::note_ended(VkFence fence) const {
    {
        std::lock_guard<std::mutex> lock(flight_);
        const auto at = std::find(in_flight_.begin(), in_flight_.end(), fence);
        if (at != in_flight_.end()) in_flight_.erase(at);
    }
    ended_.notify_all();
}

// A queue is used while it is submitted to, and no longer: an application may take it while a
// thread, perhaps the same one, has yet to wait for what runs on it.
VkResult GpuDevice::submit(const std::vector<VkCommandBuffer>& commands, VkFence fence) const {
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = (uint32_t)commands.size();
    submit.pCommandBuffers = commands.data();
    VkResult result = vk_.ResetFences(device_, 1, &fence);
    if (result != VK_SUCCESS) return result;
    Queue* queue;
    {
        std::unique_lock<std::mutex> lock(taking_);
        queue = free_queue(lock);
        if (!queue) return VK_ERROR_INITIALIZATION_FAILED;
        queue->users++;
    }
    {
        std::lock_guard<std::mutex> lock(queue->mutex);
        result = vk_.QueueSubmit(queue->handle, 1, &submit, fence);
    }
    {
        std::lock_guard<std::mutex> lock(taking_);
        queue->users--;
    }
    given_back_.notify_all();
    return result;
}

int GpuDevice::begin(const std::vector<VkCommandBuffer>& commands, VkFence fence, int most) const {
    if (lost_) return error(info().device_name(), VK_ERROR_DEVICE_LOST);
    wait_for_turn(most);
    const VkResult result = submit(commands, fence);
    note_submitted(fence, result);
    if (result == VK_SUCCESS) return kOk;
    ended_.notify_all();
    return error("submission", result);
}

int GpuDevice::finish(VkFence fence) const {
    VkResult result = VK_NOT_READY;
    if (info().type() == 0) {  // discrete
        const auto end = std::chrono::steady_clock::now() + kAwake;
        while (result == VK_NOT_READY && std::chrono::steady_clock::now() < end) {
            std::this_thread::yield();
            result = vk_.GetFenceStatus(device_, fence);
        }
    }
    if (result == VK_NOT_READY) result = vk_.WaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX);
    note_ended(fence);
    return result == VK_SUCCESS ? (int)kOk : error("submission", result);
}

}  // namespace quoll
