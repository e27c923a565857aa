// VkMats in another elempack and type.
#include <algorithm>

#include "gpu/command_list.h"
#include "gpu/vk_compute.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

bool has_scalars(const VkMat& m) { return m.elemsize == dtype_size(m.dtype) * (size_t)m.elempack; }

int& outermost(VkMat& m) { return m.dims == 1 ? m.w : m.dims == 2 ? m.h : m.c; }

bool can_be_made(DType to, DType from) {
    return to == from || (to != DType::s32 && to != DType::u8);
}

// What lies between two channels of elempack 1.
size_t plane_of(const VkMat& m) { return m.dims == 1 ? 1 : m.dims == 2 ? (size_t)m.w : m.cstep; }

// A VkMat of the sizes that `src` has with another elempack and type, without gaps.
VkMat repacked(const VkMat& src, int elempack, DType dtype, VkAllocator* allocator) {
    VkMat like, made;
    like.dims = src.dims, like.w = src.w, like.h = src.h, like.d = src.d, like.c = src.c;
    like.n = src.n, like.elempack = elempack, like.dtype = dtype;
    like.elemsize = dtype_size(dtype) * (size_t)elempack;
    outermost(like) = outermost(like) * src.elempack / elempack;
    made.create_like(like, allocator);
    return made;
}

}  // namespace

static int record(CommandList& list, const VkMat& src, const VkMat& dst) {
    const char* const function = "record_convert";
    const size_t from = dtype_size(src.dtype), to = dtype_size(dst.dtype);
    QUOLL_RETURN_IF_ERROR(check_sizes(list.device(), src.offset + src.bytes(), function));
    QUOLL_RETURN_IF_ERROR(check_sizes(list.device(), dst.bytes(), function));
    const size_t pack = (size_t)src.elempack, item = src.cstep * src.c * pack;
    const std::vector<uint32_t> push = {(uint32_t)(item * src.n),      (uint32_t)item,
                                        (uint32_t)plane_of(src),       (uint32_t)(src.nstep * pack),
                                        (uint32_t)(src.offset / from), (uint32_t)pack,
                                        (uint32_t)dst.elempack};
    list.keep(std::make_shared<VkMat>(src));
    list.keep(std::make_shared<VkMat>(dst));
    return list.dispatch_linear(
        {Shader::repack, Storage::f32, 2, {(uint32_t)src.dtype, (uint32_t)dst.dtype}},
        {block_of(src), block_of(dst)}, push, (item * src.n * to + 3) / 4);
}

int VkCompute::record_convert(const VkMat& src, VkMat& dst, int elempack, DType dtype,
                              const Option& opt) {
    const char* const function = "record_convert";
    if (!records(function)) return kError;
    if (src.empty()) return noted(recording_error(function, "the VkMat is empty"));
    if (!is_on(src, list_->device(), function)) return noted(kError);
    VkMat sizes = src;
    if (elempack < 1 || (outermost(sizes) * src.elempack) % elempack != 0) elempack = src.elempack;
    if (elempack == src.elempack && dtype == src.dtype) {
        dst = src;
        return kOk;
    }
    if (!has_scalars(src))
        return noted(recording_error(function, "elements that are no scalars of a type"));
    if (!can_be_made(dtype, src.dtype)) {
        QUOLL_LOGE("[VkCompute] record_convert: from %s to %s", dtype_name(src.dtype),
                   dtype_name(dtype));
        return noted(kError);
    }
    if (src.cstep != (size_t)src.w * src.h * src.d) {
        VkMat gapless;
        const int status = record_clone(src, gapless, opt);
        return status ? status : record_convert(gapless, dst, elempack, dtype, opt);
    }
    const VkMat made = repacked(src, elempack, dtype, or_own(opt.blob_vkallocator, *vkdev, false));
    if (made.empty()) return noted(kOutOfMemory);
    const int status = record(*list_, src, made);
    dst = made;
    return noted(status);
}

}  // namespace quoll
