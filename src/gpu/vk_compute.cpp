#include <string.h>

#include "gpu/command_list.h"
#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/mat_runs.h"

namespace quoll {

namespace {

// Null, after a message, for one of another device, whose memory this one cannot use.
VkAllocator* or_own(VkAllocator* given, const VulkanDevice& device, bool staging) {
    if (given && given->vkdev && given->vkdev->gpu() == device.gpu()) return given;
    if (given) {
        QUOLL_LOGE("[VkCompute] an allocator of another device than %s", device.info.device_name());
        return nullptr;
    }
    return staging ? device.acquire_staging_allocator() : device.acquire_blob_allocator();
}

CommandList::Copy whole(const VkMat& from, const VkMat& to) {
    return {buffer_of(*from.data), from.data->offset, buffer_of(*to.data), to.data->offset,
            from.total() * from.elemsize};
}

int fail(const char* what, const char* why) {
    QUOLL_LOGE("[VkCompute] %s: %s", what, why);
    return kError;
}

void fill_from_staging(const VkMat& staging, Mat* m) {
    for_each_run(*m, m->logical_shape(), (unsigned char*)staging.mapped_ptr(),
                 [](unsigned char* blob, const unsigned char* copy, size_t bytes) {
                     memcpy(blob, copy, bytes);
                 });
}

// Into memory that the caller has a Mat of.
int widen_from_staging(const VkMat& staging, Mat* wide) {
    Mat narrow(staging.logical_shape()), values;
    if (narrow.empty()) return kOutOfMemory;
    fill_from_staging(staging, &narrow);
    if (narrow.dtype == DType::f16)
        cast_float16_to_float32(narrow, values);
    else
        cast_bfloat16_to_float32(narrow, values);
    if (values.empty()) return kOutOfMemory;
    memcpy(wide->data, values.data, values.total() * values.elemsize);
    return kOk;
}

}  // namespace

VkCompute::VkCompute(const VulkanDevice* vkdev)
    : vkdev_(vkdev),
      list_(vkdev && vkdev->is_valid() ? new CommandList(vkdev->gpu()) : nullptr),
      status_(kOk) {}
VkCompute::~VkCompute() { delete list_; }

int VkCompute::noted(int status) {
    if (status != kOk) status_ = status;
    return status;
}

int VkCompute::record_upload(const Mat& src, VkMat& dst, const Option& opt) {
    return record_clone(src, dst, opt);
}

int VkCompute::record_clone(const Mat& src, VkMat& dst, const Option& opt) {
    if (!list_) return noted(fail("record_upload", "no device"));
    if (src.empty()) return noted(fail("record_upload", "the Mat is empty"));
    Mat planar = src;
    if (src.elempack != 1) convert_packing(src, planar, 1, opt);
    const VkMat staging(planar.logical_shape(), or_own(opt.staging_vkallocator, *vkdev_, true));
    VkMat made(planar.logical_shape(), or_own(opt.blob_vkallocator, *vkdev_, false));
    if (planar.empty() || made.empty() || !staging.mapped_ptr()) return noted(kOutOfMemory);
    for_each_run(planar, planar.logical_shape(), (unsigned char*)staging.mapped_ptr(),
                 [](const unsigned char* blob, unsigned char* copy, size_t bytes) {
                     memcpy(copy, blob, bytes);
                 });
    list_->keep(std::make_shared<VkMat>(staging));
    list_->keep(std::make_shared<VkMat>(made));
    dst = made;
    return noted(list_->copy({whole(staging, made)}));
}

static int check_source(const VkMat& src, const VulkanDevice& device, const char* what) {
    if (src.empty()) return fail(what, "the VkMat is empty");
    const VulkanDevice* own = src.allocator->vkdev;
    if (own && own->gpu() == device.gpu()) return kOk;
    return fail(what, "the VkMat is in the memory of another device");
}

static int record_to_host(CommandList& list, const VulkanDevice& device, const VkMat& src, Mat& dst,
                          bool widens, const Option& opt) {
    QUOLL_RETURN_IF_ERROR(check_source(src, device, "record_download"));
    const VkMat staging(src.logical_shape(), or_own(opt.staging_vkallocator, device, true));
    Shape shape = src.logical_shape();
    widens = widens && (shape.dtype == DType::f16 || shape.dtype == DType::bf16);
    if (widens) shape.dtype = DType::f32;
    dst.create(shape, 1, opt.blob_allocator);
    if (dst.empty() || !staging.mapped_ptr()) return kOutOfMemory;
    list.keep(std::make_shared<VkMat>(src));
    Mat filled = dst;
    list.then([staging, filled, widens]() mutable {
        if (widens) return widen_from_staging(staging, &filled);
        fill_from_staging(staging, &filled);
        return (int)kOk;
    });
    return list.copy({whole(src, staging)});
}

int VkCompute::record_download(const VkMat& src, Mat& dst, const Option& opt) {
    if (!list_) return noted(fail("record_download", "no device"));
    return noted(record_to_host(*list_, *vkdev_, src, dst, true, opt));
}

int VkCompute::record_clone(const VkMat& src, Mat& dst, const Option& opt) {
    if (!list_) return noted(fail("record_clone", "no device"));
    return noted(record_to_host(*list_, *vkdev_, src, dst, false, opt));
}

int VkCompute::record_clone(const VkMat& src, VkMat& dst, const Option& opt) {
    if (!list_) return noted(fail("record_clone", "no device"));
    const int usable = check_source(src, *vkdev_, "record_clone");
    if (usable != kOk) return noted(usable);
    const VkMat made(src.logical_shape(), or_own(opt.blob_vkallocator, *vkdev_, false));
    if (made.empty()) return noted(kOutOfMemory);
    list_->keep(std::make_shared<VkMat>(src));
    list_->keep(std::make_shared<VkMat>(made));
    dst = made;
    return noted(list_->copy({whole(src, made)}));
}

int VkCompute::submit_and_wait() {
    if (!list_) return fail("submit_and_wait", "no device");
    if (status_ != kOk) {
        const int status = status_;
        fail("submit_and_wait", "recording had failed");
        reset();
        return status;
    }
    return list_->submit_and_wait();
}

int VkCompute::reset() {
    if (list_) list_->reset();
    status_ = kOk;
    return kOk;
}

}  // namespace quoll
