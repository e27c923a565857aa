#include <string.h>

#include <algorithm>

#include "gpu/command_list.h"
#include "gpu/vk_compute.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/mat_runs.h"

namespace quoll {

namespace {

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

// Memory for the values of `like`, with its elempack.
void create_like(const Mat& like, Mat* m, Allocator* from) {
    if (!has_own_elements(like.elemsize, like.elempack, like.dtype)) {
        Shape scalars = element_shape(like);
        (like.dims == 1 ? scalars.w : like.dims == 2 ? scalars.h : scalars.c) *= like.elempack;
        m->create(scalars, like.elempack, from);
        return;
    }
    const size_t size = like.elemsize;
    const int pack = like.elempack, n = like.n;
    if (like.dims == 1) m->create(like.w, size, pack, n, from);
    if (like.dims == 2) m->create(like.w, like.h, size, pack, n, from);
    if (like.dims == 3) m->create(like.w, like.h, like.c, size, pack, n, from);
    if (like.dims == 4) m->create(like.w, like.h, like.d, like.c, size, pack, n, from);
}

// As f32 and with the elempack of `wide`: memory that the caller has a Mat of.
int convert_from_staging(const VkMat& staging, const Option& opt, Mat* wide) {
    Mat narrow, values, packed;
    create_like(staging.shape(), &narrow, nullptr);
    if (narrow.empty()) return kOutOfMemory;
    fill_from_staging(staging, &narrow);
    values = narrow;
    if (narrow.dtype == DType::f16) cast_float16_to_float32(narrow, values, opt);
    if (narrow.dtype == DType::bf16) cast_bfloat16_to_float32(narrow, values, opt);
    if (!values.empty()) convert_packing(values, packed, wide->elempack, opt);
    if (packed.empty()) return kOutOfMemory;
    const size_t item = packed.cstep * packed.c * packed.elemsize;
    for (int b = 0; b < packed.n; b++)
        memcpy((unsigned char*)wide->data + b * wide->nstep * wide->elemsize,
               (unsigned char*)packed.data + b * packed.nstep * packed.elemsize, item);
    return kOk;
}

}  // namespace

// Items of a batch are filled where they lie.
static bool is_item_like(const VkMat& m, const VkMat& like, const VulkanDevice& device) {
    const bool item = m.data && !m.refcount && m.allocator->vkdev;
    return item && m.allocator->vkdev->gpu() == device.gpu() && m.dims == like.dims &&
           m.logical_shape() == like.logical_shape() && m.elemsize == like.elemsize &&
           m.elempack == like.elempack;
}

VkAllocator* or_own(VkAllocator* given, const VulkanDevice& device, bool staging) {
    if (given && given->vkdev && given->vkdev->gpu() == device.gpu()) return given;
    if (given) {
        QUOLL_LOGE("[VkCompute] an allocator of another device than %s", device.info.device_name());
        return nullptr;
    }
    return staging ? device.acquire_staging_allocator() : device.acquire_blob_allocator();
}

bool is_on(const VkMat& m, const GpuDevice& device, const char* function) {
    const VulkanDevice* own = m.allocator->vkdev;
    if (own && own->gpu().get() == &device) return true;
    QUOLL_LOGE("[VkCompute] %s: the VkMat is in the memory of another device", function);
    return false;
}

int check_sizes(const GpuDevice& device, size_t bytes, const char* function) {
    const size_t most = std::min<size_t>(device.limits().maxStorageBufferRange, 0x7fffffff);
    if (bytes <= most) return kOk;
    QUOLL_LOGE("[VkCompute] %s: a blob of %zu bytes, %s takes at most %zu", function, bytes,
               device.info().device_name(), most);
    return kError;
}

int recording_error(const char* what, const char* why) {
    QUOLL_LOGE("[VkCompute] %s: %s", what, why);
    return kError;
}

VkCompute::VkCompute(const VulkanDevice* device)
    : vkdev(device),
      list_(device && device->is_valid() ? new CommandList(device->gpu()) : nullptr),
      status_(kOk) {}
VkCompute::~VkCompute() { delete list_; }

int VkCompute::noted(int status) {
    if (status != kOk) status_ = status;
    return status;
}

int VkCompute::record_upload(const Mat& src, VkMat& dst, const Option& opt) {
    if (!records("record_upload")) return kError;
    if (src.empty()) return record_clone(src, dst, opt);
    Mat planar = src, stored;
    if (src.elempack != 1 && !has_own_elements(src.elemsize, src.elempack, src.dtype))
        convert_packing(src, planar, 1, opt);
    stored = planar;
    const bool halves = opt.use_fp16_storage && list_->device().features().storage16;
    if (halves && src.dtype == DType::f32 && !planar.empty())
        cast_float32_to_float16(planar, stored, opt);
    return stored.empty() ? noted(kOutOfMemory) : record_clone(stored, dst, opt);
}

int VkCompute::record_clone(const Mat& src, VkMat& dst, const Option& opt) {
    if (!records("record_upload")) return kError;
    if (src.empty()) return noted(recording_error("record_upload", "the Mat is empty"));
    VkMat staging, made = dst;
    staging.create_like(src, or_own(opt.staging_vkallocator, *vkdev, true));
    if (!is_item_like(dst, staging, *vkdev))
        made.create_like(src, or_own(opt.blob_vkallocator, *vkdev, false));
    if (made.empty() || !staging.mapped_ptr()) return noted(kOutOfMemory);
    for_each_run(src, element_shape(src), (unsigned char*)staging.mapped_ptr(),
                 [](const unsigned char* blob, unsigned char* copy, size_t bytes) {
                     memcpy(copy, blob, bytes);
                 });
    list_->keep(std::make_shared<VkMat>(staging));
    list_->keep(std::make_shared<VkMat>(made));
    dst = made;
    return noted(list_->copy(CommandList::copies(staging, made)));
}

static int check_source(const VkMat& src, const VulkanDevice& device, const char* what) {
    if (src.empty()) return recording_error(what, "the VkMat is empty");
    return is_on(src, *device.gpu(), what) ? (int)kOk : (int)kError;
}

// Memory that nobody counts, of the sizes that are wanted.
static bool is_of_application(const Mat& m, const Mat& like) {
    return m.data && !m.refcount && m.dims == like.dims && m.w == like.w && m.h == like.h &&
           m.d == like.d && m.c == like.c && m.n == like.n && m.elemsize == like.elemsize &&
           m.elempack == like.elempack;
}

// converts: to f32, and to elempack 1 without opt.use_packing_layout.
static int record_to_host(CommandList& list, const VulkanDevice& device, const VkMat& src, Mat& dst,
                          bool converts, const Option& opt) {
    QUOLL_RETURN_IF_ERROR(check_source(src, device, "record_download"));
    VkMat staging;
    staging.create_like(src, or_own(opt.staging_vkallocator, device, true));
    Mat like = src.shape();
    if (converts && !has_own_elements(src.elemsize, src.elempack, src.dtype)) {
        Shape shape = src.logical_shape();
        if (src.dtype == DType::f16 || src.dtype == DType::bf16) shape.dtype = DType::f32;
        like = Mat::of_shape(shape);
        if (opt.use_packing_layout)
            like = src.shape(), like.dtype = shape.dtype,
            like.elemsize = dtype_size(shape.dtype) * (size_t)src.elempack;
    }
    converts = like.dtype != src.dtype || like.elempack != src.elempack;
    if (!is_of_application(dst, like)) create_like(like, &dst, opt.blob_allocator);
    if (dst.empty() || !staging.mapped_ptr()) return kOutOfMemory;
    list.keep(std::make_shared<VkMat>(src));
    Mat filled = dst;
    Option host;
    host.num_threads = opt.num_threads;
    list.then([staging, filled, converts, host]() mutable {
        if (converts) return convert_from_staging(staging, host, &filled);
        fill_from_staging(staging, &filled);
        return (int)kOk;
    });
    return list.copy(CommandList::copies(src, staging));
}

int VkCompute::record_download(const VkMat& src, Mat& dst, const Option& opt) {
    if (!records("record_download")) return kError;
    return noted(record_to_host(*list_, *vkdev, src, dst, true, opt));
}

int VkCompute::record_clone(const VkMat& src, Mat& dst, const Option& opt) {
    if (!records("record_clone")) return kError;
    return noted(record_to_host(*list_, *vkdev, src, dst, false, opt));
}

int VkCompute::record_clone(const VkMat& src, VkMat& dst, const Option& opt) {
    if (!records("record_clone")) return kError;
    const int usable = check_source(src, *vkdev, "record_clone");
    if (usable != kOk) return noted(usable);
    VkMat made = dst;
    if (!is_item_like(dst, src, *vkdev))
        made.create_like(src, or_own(opt.blob_vkallocator, *vkdev, false));
    if (made.empty()) return noted(kOutOfMemory);
    list_->keep(std::make_shared<VkMat>(src));
    list_->keep(std::make_shared<VkMat>(made));
    dst = made;
    return noted(list_->copy(CommandList::copies(src, made)));
}

int VkCompute::record_pipeline(const Pipeline* pipeline, const std::vector<VkMat>& bindings,
                               const std::vector<vk_constant_type>& constants,
                               const VkMat& dispatcher) {
    const char* const what = "record_pipeline";
    if (!records(what)) return kError;
    if (!pipeline || !pipeline->pipeline())
        return noted(recording_error(what, "the pipeline was not created"));
    if (pipeline->vkdev->gpu() != vkdev->gpu())
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
        const int usable = check_source(m, *vkdev, what);
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

int VkCompute::record_pipeline(const Pipeline* pipeline, const std::vector<VkMat>& buffers,
                               const std::vector<VkImageMat>& images,
                               const std::vector<vk_constant_type>& constants,
                               const VkMat& dispatcher) {
    std::vector<VkMat> all = buffers;
    all.insert(all.end(), images.begin(), images.end());
    return record_pipeline(pipeline, all, constants, dispatcher);
}

int VkCompute::record_pipeline(const Pipeline* pipeline, const std::vector<VkMat>& buffers,
                               const std::vector<VkImageMat>& images,
                               const std::vector<vk_constant_type>& constants,
                               const Mat& dispatcher) {
    VkMat sizes;
    sizes.w = dispatcher.w, sizes.h = dispatcher.h, sizes.d = dispatcher.d, sizes.c = dispatcher.c;
    return record_pipeline(pipeline, buffers, images, constants, sizes);
}

int VkCompute::record_pipeline(const Pipeline* pipeline, const std::vector<VkImageMat>& images,
                               const std::vector<vk_constant_type>& constants,
                               const VkImageMat& dispatcher) {
    return record_pipeline(pipeline, std::vector<VkMat>(), images, constants, dispatcher);
}

uint64_t VkCompute::pending_dispatch_total() const { return list_ ? list_->groups() : 0; }

int VkTransfer::record_upload(const Mat& src, VkMat& dst, const Option& opt, bool flatten) {
    Mat values = src;
    if (flatten && !values.empty()) values = values.reshape((int)(values.logical_shape().total()));
    const int status = commands_.record_upload(values, dst, opt);
    if (status == kOk) pending_ += dst.bytes();
    return status;
}

bool VkCompute::records(const char* what) {
    if (list_ && !list_->is_submitted()) return true;
    noted(
        recording_error(what, list_ ? "what was submitted has not been waited for" : "no device"));
    return false;
}

int VkCompute::submit() {
    if (!list_) return recording_error("submit", "no device");
    if (list_->is_submitted())
        return recording_error("submit", "what was submitted has not been waited for");
    if (status_ == kOk) return list_->submit();
    const int status = status_;
    recording_error("submit", "recording had failed");
    reset();
    return status;
}

int VkCompute::wait() {
    if (!list_) return recording_error("wait", "no device");
    if (!list_->is_submitted()) return recording_error("wait", "nothing was submitted");
    const int status = list_->wait();
    status_ = kOk;
    return status;
}

int VkCompute::submit_and_wait() {
    const int status = submit();
    return status == kOk ? wait() : status;
}

int VkCompute::reset() {
    if (list_) list_->reset();
    status_ = kOk;
    return kOk;
}

}  // namespace quoll
