// The public classes of a library that was built without QUOLL_VULKAN: no device, no memory.
#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/pipeline.h"
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
uint32_t VulkanDevice::get_heap_budget() const { return 0; }
uint32_t VulkanDevice::find_memory_index(uint32_t, VkFlags, VkFlags, VkFlags) const {
    return 0xffffffffu;
}
bool VulkanDevice::is_mappable(uint32_t) const { return false; }
bool VulkanDevice::is_coherent(uint32_t) const { return false; }
bool VulkanDevice::is_device_local(uint32_t) const { return false; }
const PipelineCache* VulkanDevice::get_pipeline_cache() const { return nullptr; }
void VulkanDevice::convert_packing(const VkMat&, VkMat& dst, int, VkCompute&, const Option&) const {
    not_built();
    dst.release();
}
void VulkanDevice::convert_packing(const VkMat&, VkMat& dst, int, int, VkCompute&,
                                   const Option&) const {
    not_built();
    dst.release();
}
VkMat VulkanDevice::get_dummy_buffer() const { return VkMat(); }
VkImageMat VulkanDevice::get_dummy_image() const { return VkImageMat(); }
VkImageMat VulkanDevice::get_dummy_image_readonly() const { return VkImageMat(); }
bool VulkanDevice::shape_support_image_storage(const Mat&) const { return false; }
VkBuffer VkAllocator::create_buffer(size_t, VkFlags) { return VkBuffer(0); }
VkImage VkAllocator::create_image(int, int, int, int, int, VkFlags) { return VkImage(0); }
VkImageView VkAllocator::create_imageview(VkImage, int) { return VkImageView(0); }
VkDeviceMemory VkAllocator::allocate_memory(size_t, uint32_t) { return VkDeviceMemory(0); }
VkDeviceMemory VkAllocator::allocate_dedicated_memory(size_t, uint32_t, VkImage, VkBuffer) {
    return VkDeviceMemory(0);
}
VkDeviceMemory VkAllocator::allocate_import_host_memory(size_t, uint32_t, void*) {
    return VkDeviceMemory(0);
}
VulkanDevice* get_gpu_device(int) {
    not_built();
    return nullptr;
}

PipelineCache::PipelineCache(const VulkanDevice* device) : vkdev(device), d(nullptr) {}
PipelineCache::~PipelineCache() {}
void PipelineCache::clear() {}
int PipelineCache::load_cache(const unsigned char*, size_t) const { return not_built(); }
size_t PipelineCache::size() const { return 0; }
int PipelineCache::save_cache(std::vector<unsigned char>*) const { return not_built(); }
void PipelineCache::set_tuning(bool) const {}
#if QUOLL_STDIO
int PipelineCache::load_cache(FILE*) const { return not_built(); }
int PipelineCache::save_cache(FILE*) const { return not_built(); }
int PipelineCache::load_cache(const char*) const { return not_built(); }
int PipelineCache::save_cache(const char*) const { return not_built(); }
#endif

VkPoolAllocator::VkPoolAllocator(const VulkanDevice* device, Use, size_t)
    : VkAllocator(device), d(nullptr) {}
VkPoolAllocator::~VkPoolAllocator() {}
void VkPoolAllocator::set_size_compare_ratio(float) {}
void VkPoolAllocator::clear() {}
VkBufferMemory* VkPoolAllocator::fastMalloc(size_t) { return nullptr; }
void VkPoolAllocator::fastFree(VkBufferMemory*) {}

struct VkImportedMemory::Private {};
VkImportedMemory::VkImportedMemory(const VulkanDevice* device, void*, size_t)
    : VkAllocator(device), d(nullptr) {}
VkImportedMemory::~VkImportedMemory() {}
size_t VkImportedMemory::alignment(const VulkanDevice*) { return 0; }
bool VkImportedMemory::is_valid() const { return false; }
VkBufferMemory* VkImportedMemory::fastMalloc(size_t) { return nullptr; }
void VkImportedMemory::fastFree(VkBufferMemory*) {}

VkCompute::VkCompute(const VulkanDevice* device) : vkdev(device), list_(nullptr), status_(kOk) {}
VkCompute::~VkCompute() {}
int VkCompute::noted(int status) { return status_ = status; }
int VkCompute::record_upload(const Mat&, VkMat&, const Option&) { return not_built(); }
int VkCompute::record_download(const VkMat&, Mat&, const Option&) { return not_built(); }
int VkCompute::record_clone(const Mat&, VkMat&, const Option&) { return not_built(); }
int VkCompute::record_clone(const VkMat&, Mat&, const Option&) { return not_built(); }
int VkCompute::record_clone(const VkMat&, VkMat&, const Option&) { return not_built(); }
int VkCompute::record_convert(const VkMat&, VkMat&, int, DType, const Option&) {
    return not_built();
}
int VkCompute::record_pipeline(const Pipeline*, const std::vector<VkMat>&,
                               const std::vector<vk_constant_type>&, const VkMat&) {
    return not_built();
}
int VkCompute::record_pipeline(const Pipeline*, const std::vector<VkMat>&,
                               const std::vector<VkImageMat>&, const std::vector<vk_constant_type>&,
                               const VkMat&) {
    return not_built();
}
int VkCompute::record_pipeline(const Pipeline*, const std::vector<VkMat>&,
                               const std::vector<VkImageMat>&, const std::vector<vk_constant_type>&,
                               const Mat&) {
    return not_built();
}
int VkCompute::record_pipeline(const Pipeline*, const std::vector<VkImageMat>&,
                               const std::vector<vk_constant_type>&, const VkImageMat&) {
    return not_built();
}
uint64_t VkCompute::pending_dispatch_total() const { return 0; }
#if QUOLL_PIXEL
int VkCompute::record_from_pixels(const unsigned char*, int, int, int, int, VkMat&, const Option&,
                                  const VkPixelSteps&) {
    return not_built();
}
int VkCompute::record_to_pixels(const VkMat&, unsigned char*, int, int, const Option&,
                                const VkPixelSteps&) {
    return not_built();
}
#endif
int VkTransfer::record_upload(const Mat&, VkMat&, const Option&, bool) { return not_built(); }
int VkCompute::submit_and_wait() { return not_built(); }
int VkCompute::submit() { return not_built(); }
int VkCompute::wait() { return not_built(); }
int VkCompute::reset() { return kOk; }

struct Pipeline::Private {};
Pipeline::Pipeline(const VulkanDevice* device)
    : vkdev(device), d(nullptr), info_(), local_size_{4, 4, 4}, subgroup_size_(0) {}
Pipeline::~Pipeline() {}
void Pipeline::set_local_size_xyz(int, int, int) {}
void Pipeline::set_optimal_local_size_xyz(int, int, int) {}
void Pipeline::set_subgroup_size(uint32_t) {}
int Pipeline::create(const uint32_t*, size_t, const std::vector<vk_specialization_type>&) {
    return not_built();
}
int resolve_shader_info(const uint32_t*, size_t, ShaderInfo&) { return not_built(); }

}  // namespace quoll
