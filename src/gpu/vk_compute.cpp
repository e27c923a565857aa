#include <string.h>

#include <algorithm>

#include "gpu/command_list.h"
#include "gpu/vk_compute.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/mat_runs.h"

namespace quoll {

namespace {

CommandList::Copy whole(const VkMat& from, const VkMat& to) {
    return {buffer_of(*from.data), from.buffer_offset(), buffer_of(*to.data), to.buffer_offset(),
            from.bytes()};
}

// Sizes in elements.
Shape element_shape(const Mat& m) {
    Shape s;
    s.dims = m.dims, s.w = m.w, s.h = m.h, s.d = m.d, s.c = m.c, s.n = m.n, s.dtype = m.dtype;
    return s;
}

// Whether elements are not scalars of the type, but, say, pixels.
bool has_own_elements(size_t elemsize, int elempack, DType dtype) {
    return elemsize != dtype_size(dtype) * (size_t)elempack;
}

void fill_from_staging(const VkMat& staging, Mat* m) {
    for_each_run(*m, element_shape(*m), (unsigned char*)staging.mapped_ptr(),
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

VkAllocator* or_own(VkAllocator* given, const VulkanDevice& device, bool staging) {
    if (given && given->vkdev && given->vkdev->gpu() == device.gpu()) return given;
    if (given) {
        QUOLL_LOGE("[VkCompute] an allocator of another device than %s", device.info.device_name());
        return nullptr;
    }
    return staging ? device.acquire_staging_allocator() : device.acquire_blob_allocator();
}

int recording_error(const char* what, const char* why) {
    QUOLL_LOGE("[VkCompute] %s: %s", what, why);
    return kError;
}

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
    if (!list_) return noted(recording_error("record_upload", "no device"));
    if (src.empty()) return noted(recording_error("record_upload", "the Mat is empty"));
    Mat planar = src;
    if (src.elempack != 1 && !has_own_elements(src.elemsize, src.elempack, src.dtype))
        convert_packing(src, planar, 1, opt);
    VkMat staging, made;
    staging.create_like(planar, or_own(opt.staging_vkallocator, *vkdev_, true));
    made.create_like(planar, or_own(opt.blob_vkallocator, *vkdev_, false));
    if (planar.empty() || made.empty() || !staging.mapped_ptr()) return noted(kOutOfMemory);
    for_each_run(planar, element_shape(planar), (unsigned char*)staging.mapped_ptr(),
                 [](const unsigned char* blob, unsigned char* copy, size_t bytes) {
                     memcpy(copy, blob, bytes);
                 });
    list_->keep(std::make_shared<VkMat>(staging));
    list_->keep(std::make_shared<VkMat>(made));
    dst = made;
    return noted(list_->copy({whole(staging, made)}));
}

static int check_source(const VkMat& src, const VulkanDevice& device, const char* what) {
    if (src.empty()) return recording_error(what, "the VkMat is empty");
    const VulkanDevice* own = src.allocator->vkdev;
    if (own && own->gpu() == device.gpu()) return kOk;
    return recording_error(what, "the VkMat is in the memory of another device");
}

// Memory that nobody counts, of the sizes that are wanted.
static bool is_of_application(const Mat& m, const Mat& like) {
    return m.data && !m.refcount && m.dims == like.dims && m.w == like.w && m.h == like.h &&
           m.d == like.d && m.c == like.c && m.n == like.n && m.elemsize == like.elemsize &&
           m.elempack == like.elempack;
}

static void create_like(const Mat& like, Mat* m, const Option& opt) {
    if (!has_own_elements(like.elemsize, like.elempack, like.dtype)) {
        Shape scalars = element_shape(like);
        (like.dims == 1 ? scalars.w : like.dims == 2 ? scalars.h : scalars.c) *= like.elempack;
        m->create(scalars, like.elempack, opt.blob_allocator);
        return;
    }
    const size_t size = like.elemsize;
    const int pack = like.elempack, n = like.n;
    if (like.dims == 1) m->create(like.w, size, pack, n, opt.blob_allocator);
    if (like.dims == 2) m->create(like.w, like.h, size, pack, n, opt.blob_allocator);
    if (like.dims == 3) m->create(like.w, like.h, like.c, size, pack, n, opt.blob_allocator);
    if (like.dims == 4)
        m->create(like.w, like.h, like.d, like.c, size, pack, n, opt.blob_allocator);
}

static int record_to_host(CommandList& list, const VulkanDevice& device, const VkMat& src, Mat& dst,
                          bool widens, const Option& opt) {
    QUOLL_RETURN_IF_ERROR(check_source(src, device, "record_download"));
    VkMat staging;
    staging.create_like(src, or_own(opt.staging_vkallocator, device, true));
    widens = widens && src.elempack == 1 && (src.dtype == DType::f16 || src.dtype == DType::bf16);
    Shape shape = src.logical_shape();
    if (widens) shape.dtype = DType::f32;
    const Mat like = widens ? Mat::of_shape(shape) : src.shape();
    if (!is_of_application(dst, like)) create_like(like, &dst, opt);
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
    if (!list_) return noted(recording_error("record_download", "no device"));
    return noted(record_to_host(*list_, *vkdev_, src, dst, true, opt));
}

int VkCompute::record_clone(const VkMat& src, Mat& dst, const Option& opt) {
    if (!list_) return noted(recording_error("record_clone", "no device"));
    return noted(record_to_host(*list_, *vkdev_, src, dst, false, opt));
}

int VkCompute::record_clone(const VkMat& src, VkMat& dst, const Option& opt) {
    if (!list_) return noted(recording_error("record_clone", "no device"));
    const int usable = check_source(src, *vkdev_, "record_clone");
    if (usable != kOk) return noted(usable);
    VkMat made;
    made.create_like(src, or_own(opt.blob_vkallocator, *vkdev_, false));
    if (made.empty()) return noted(kOutOfMemory);
    list_->keep(std::make_shared<VkMat>(src));
    list_->keep(std::make_shared<VkMat>(made));
    dst = made;
    return noted(list_->copy({whole(src, made)}));
}

int VkCompute::record_pipeline(const Pipeline* pipeline, const std::vector<VkMat>& bindings,
                               const std::vector<vk_constant_type>& constants,
                               const VkMat& dispatcher) {
    const char* const what = "record_pipeline";
    if (!list_) return noted(recording_error(what, "no device"));
    if (!pipeline || !pipeline->handles())
        return noted(recording_error(what, "the pipeline was not created"));
    if (pipeline->vkdev->gpu() != vkdev_->gpu())
        return noted(recording_error(what, "the pipeline is of another device"));
    const ShaderInfo& info = pipeline->shader_info();
    if ((int)bindings.size() != info.binding_count) {
        QUOLL_LOGE("[VkCompute] record_pipeline: %zu bindings, the shader has %d", bindings.size(),
                   info.binding_count);
        return noted(kError);
    }
    if (constants.size() * 4 > kPushBytes)
        return noted(recording_error(what, "more than 32 words of push constants"));
    for (const VkMat& m : bindings) {
        if (m.empty()) continue;
        const int usable = check_source(m, *vkdev_, what);
        if (usable != kOk) return noted(usable);
        list_->keep(std::make_shared<VkMat>(m));
    }
    const int sizes[] = {dispatcher.w, dispatcher.h * std::max(dispatcher.d, 1), dispatcher.c};
    const uint32_t local[] = {pipeline->local_size_x(), pipeline->local_size_y(),
                              pipeline->local_size_z()};
    uint32_t groups[3];
    for (int i = 0; i < 3; i++)
        groups[i] = ((uint32_t)std::max(sizes[i], 1) + local[i] - 1) / local[i];
    return noted(list_->dispatch(*pipeline, bindings, constants, groups));
}

int VkTransfer::record_upload(const Mat& src, VkMat& dst, const Option& opt, bool flatten) {
    Mat values = src;
    if (opt.use_fp16_storage && src.dtype == DType::f32) cast_float32_to_float16(src, values, opt);
    if (flatten && !values.empty()) values = values.reshape((int)(values.logical_shape().total()));
    return commands_.record_upload(values, dst, opt);
}

int VkCompute::submit_and_wait() {
    if (!list_) return recording_error("submit_and_wait", "no device");
    if (status_ != kOk) {
        const int status = status_;
        recording_error("submit_and_wait", "recording had failed");
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
