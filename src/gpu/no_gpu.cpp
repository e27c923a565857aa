// The public classes of a library that was built without QUOLL_VULKAN: no device, no memory.
#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

int not_built() {
    QUOLL_LOGE("Vulkan: this library was built without QUOLL_VULKAN");
    return kError;
}

}  // namespace

VulkanDevice::VulkanDevice(int index) : index_(index), d(nullptr) {}
VulkanDevice::~VulkanDevice() {}
bool VulkanDevice::is_valid() const { return false; }
VkAllocator* VulkanDevice::acquire_blob_allocator() const { return nullptr; }
VkAllocator* VulkanDevice::acquire_staging_allocator() const { return nullptr; }
std::shared_ptr<GpuDevice> VulkanDevice::gpu() const { return nullptr; }
VulkanDevice* get_gpu_device(int) {
    not_built();
    return nullptr;
}

PipelineCache::PipelineCache(const VulkanDevice* vkdev) : vkdev_(vkdev) {}
int PipelineCache::load_cache(const unsigned char*, size_t) const { return not_built(); }
int PipelineCache::save_cache(std::vector<unsigned char>*) const { return not_built(); }
#if QUOLL_STDIO
int PipelineCache::load_cache(const char*) const { return not_built(); }
int PipelineCache::save_cache(const char*) const { return not_built(); }
#endif

VkPoolAllocator::VkPoolAllocator(const VulkanDevice* device, Use, size_t)
    : VkAllocator(device), d(nullptr) {}
VkPoolAllocator::~VkPoolAllocator() {}
void VkPoolAllocator::clear() {}
VkBufferMemory* VkPoolAllocator::fastMalloc(size_t) { return nullptr; }
void VkPoolAllocator::fastFree(VkBufferMemory*) {}

VkCompute::VkCompute(const VulkanDevice* vkdev) : vkdev_(vkdev), list_(nullptr), status_(kOk) {}
VkCompute::~VkCompute() {}
int VkCompute::noted(int status) { return status_ = status; }
int VkCompute::record_upload(const Mat&, VkMat&, const Option&) { return not_built(); }
int VkCompute::record_download(const VkMat&, Mat&, const Option&) { return not_built(); }
int VkCompute::record_clone(const Mat&, VkMat&, const Option&) { return not_built(); }
int VkCompute::record_clone(const VkMat&, Mat&, const Option&) { return not_built(); }
int VkCompute::record_clone(const VkMat&, VkMat&, const Option&) { return not_built(); }
int VkCompute::submit_and_wait() { return not_built(); }
int VkCompute::reset() { return kOk; }

}  // namespace quoll
