// Pixels of the host to and from VkMats.
#include <string.h>

#include <algorithm>

#include "gpu/command_list.h"
#include "gpu/vk_compute.h"
#include "image/pixel.h"
#include "quoll/log.h"
#include "quoll/status.h"

#if QUOLL_PIXEL

namespace quoll {

namespace {

size_t words_of(size_t bytes) { return (bytes + 3) / 4; }

// What both shaders are given besides buffers and sizes.
struct Conversion {
    PixelPlan plan;
    int w, h;                // of what is read
    int target_w, target_h;  // of what is made
    const char* function;
    uint32_t yuv[8];   // of pixels_in.comp
    size_t yuv_bytes;  // 0: pixels

    bool resized() const { return w != target_w || h != target_h; }
    // Words of the table of taps, for the target's columns, then for its rows.
    size_t table_words() const { return resized() ? 2 * ((size_t)target_w + target_h) : 0; }
    size_t image_words() const { return words_of(yuv_bytes ? yuv_bytes : (size_t)w * plan.in * h); }
    int write_table(uint32_t* words) const;
    void push_formats(int channels, const VkPixelSteps& steps, std::vector<uint32_t>* push) const;
};

int Conversion::write_table(uint32_t* words) const {
    if (!resized()) return kOk;
    std::vector<PixelTap> taps((size_t)target_w + target_h);
    fill_pixel_taps(taps.data(), w, target_w);
    fill_pixel_taps(taps.data() + target_w, h, target_h);
    for (const PixelTap& tap : taps) {
        *words++ = (uint32_t)tap.index;
        *words++ = (uint32_t)tap.weight[0] | (uint32_t)tap.weight[1] << 16;
    }
    return kOk;
}

uint32_t bits_of(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

void Conversion::push_formats(int channels, const VkPixelSteps& steps,
                              std::vector<uint32_t>* push) const {
    for (int k = 0; k < 4; k++) push->push_back(k < plan.out ? (uint32_t)plan.from[k] : 0);
    for (int colour : {plan.red, plan.green, plan.blue}) push->push_back((uint32_t)colour);
    for (int k = 0; k < 4; k++)
        push->push_back(bits_of(steps.mean_vals && k < channels ? steps.mean_vals[k] : 0.f));
    for (int k = 0; k < 4; k++)
        push->push_back(bits_of(steps.norm_vals && k < channels ? steps.norm_vals[k] : 1.f));
}

Storage storage_of(const VkMat& m) { return m.dtype == DType::f16 ? Storage::f16 : Storage::f32; }

bool is_image(const VkMat& m) {
    const bool type = m.dtype == DType::f32 || m.dtype == DType::f16;
    return !m.empty() && type && m.elempack == 1 && m.n == 1 && (m.dims == 2 || m.dims == 3);
}

// The whole image lies at `pixels`.
bool prepare_yuv(const unsigned char* pixels, int type, int w, int h, int stride,
                 VkPixelSteps::Yuv kind, Conversion* c) {
    const bool rgb = (type & Mat::PIXEL_FORMAT_MASK) == Mat::PIXEL_RGB;
    if (!rgb || (stride && stride != w)) {
        QUOLL_LOGE(
            "[%s] YUV 4:2:0: expected type PIXEL_RGB or PIXEL_RGB2x and stride 0 or %d, got "
            "%d and %d",
            c->function, w, type, stride);
        return false;
    }
    if (!valid_image(pixels, w, h, w, 1, c->function)) return false;
    const uint32_t luma = (uint32_t)w * (uint32_t)h, across = ((uint32_t)w + 1) / 2,
                   plane = across * (((uint32_t)h + 1) / 2);
    const bool planes = kind == VkPixelSteps::kI420;
    const uint32_t u = kind == VkPixelSteps::kNv21 ? 1 : 0, v = planes ? plane : 1 - u;
    const uint32_t words[] = {
        (uint32_t)w, luma, planes ? across : 2 * across, planes ? 1u : 2u, u, v, 0, 0};
    memcpy(c->yuv, words, sizeof(words));
    c->yuv_bytes = (size_t)luma + 2 * (size_t)plane;
    return true;
}

// False, after a message, unless type, image, rectangle and target are valid; moves `pixels` to
// the rectangle and sets the stride.
bool prepare_source(const unsigned char** pixels, int type, int w, int h, int* stride,
                    const VkPixelSteps& steps, Conversion* c) {
    if (!make_plan(type, c->plan, c->function)) return false;
    const bool yuv = steps.yuv != VkPixelSteps::kNoYuv;
    if (yuv && !prepare_yuv(*pixels, type, w, h, *stride, steps.yuv, c)) return false;
    if (*stride == 0 && w > 0 && w <= 0x7fffffff / c->plan.in) *stride = w * c->plan.in;
    if (!yuv && !valid_image(*pixels, w, h, *stride, c->plan.in, c->function)) return false;
    c->w = steps.roiw ? steps.roiw : w, c->h = steps.roiw ? steps.roih : h;
    const int x = steps.roiw ? steps.roix : 0, y = steps.roiw ? steps.roiy : 0;
    if (x < 0 || y < 0 || c->w < 1 || c->h < 1 || c->w > w - x || c->h > h - y) {
        QUOLL_LOGE("[%s] expected a rectangle inside %d x %d, got %d x %d at (%d, %d)", c->function,
                   w, h, c->w, c->h, x, y);
        return false;
    }
    c->yuv[6] = (uint32_t)x, c->yuv[7] = (uint32_t)y;
    if (!yuv) *pixels += (ptrdiff_t)y * *stride + (ptrdiff_t)x * c->plan.in;
    return true;
}

bool prepare_target(const VkPixelSteps& steps, Conversion* c) {
    c->target_w = steps.target_width ? steps.target_width : c->w;
    c->target_h = steps.target_height ? steps.target_height : c->h;
    if (c->target_w > 0 && c->target_h > 0) return true;
    QUOLL_LOGE("[%s] expected a target of at least 1 x 1, got %d x %d", c->function, c->target_w,
               c->target_h);
    return false;
}

}  // namespace

// Rows of the rectangle without gaps, or all planes, then the table.
static int record_pixels(CommandList& list, const unsigned char* pixels, int stride,
                         const Conversion& c, VkAllocator* staging_allocator,
                         VkAllocator* blob_allocator, VkMat* words) {
    const size_t row = (size_t)c.w * c.plan.in, image = c.image_words();
    const size_t all = image + c.table_words();
    QUOLL_RETURN_IF_ERROR(check_sizes(list.device(), all * 4, c.function));
    VkMat staging((int)all, (size_t)4, staging_allocator);
    if (!staging.mapped_ptr()) return kOutOfMemory;
    unsigned char* to = (unsigned char*)staging.mapped_ptr();
    if (c.yuv_bytes) memcpy(to, pixels, c.yuv_bytes);
    for (int y = 0; y < c.h && !c.yuv_bytes; y++)
        memcpy(to + (size_t)y * row, pixels + (ptrdiff_t)y * stride, row);
    QUOLL_RETURN_IF_ERROR(c.write_table((uint32_t*)to + image));
    list.keep(std::make_shared<VkMat>(staging));
    *words = staging;
    // A discrete device reads each byte several times: better from its own memory.
    if (list.device().info().type() != 0) return kOk;
    *words = VkMat((int)all, (size_t)4, blob_allocator);
    if (words->empty()) return kOutOfMemory;
    list.keep(std::make_shared<VkMat>(*words));
    return list.copy({{buffer_of(*staging.data), staging.buffer_offset(), buffer_of(*words->data),
                       words->buffer_offset(), words->bytes()}});
}

static int record_from(CommandList& list, const VulkanDevice& vkdev, const unsigned char* pixels,
                       int type, int w, int h, int stride, VkMat& dst, const Option& opt,
                       const VkPixelSteps& steps, VkAllocator* staging, VkAllocator* blobs) {
    const GpuDevice& device = *vkdev.gpu();
    Conversion c = {};
    c.function = "record_from_pixels";
    if (!prepare_source(&pixels, type, w, h, &stride, steps, &c) || !prepare_target(steps, &c))
        return kError;
    const size_t count = (size_t)c.target_w * c.target_h;
    QUOLL_RETURN_IF_ERROR(check_sizes(device, count * c.plan.out * 4, c.function));
    const bool keeps = is_image(dst) && dst.w == c.target_w && dst.h == c.target_h &&
                       dst.c == c.plan.out && dst.dims == 3;
    if (keeps && !is_on(dst, device, c.function)) return kError;
    if (!keeps) {
        const bool half = opt.use_fp16_storage && device.features().storage16;
        dst =
            VkMat(Shape(c.target_w, c.target_h, c.plan.out, half ? DType::f16 : DType::f32), blobs);
        if (dst.empty()) return kOutOfMemory;
    }
    list.keep(std::make_shared<VkMat>(dst));
    VkMat words;
    QUOLL_RETURN_IF_ERROR(record_pixels(list, pixels, stride, c, staging, blobs, &words));
    const size_t image = c.image_words();
    std::vector<uint32_t> push = {(uint32_t)count,      (uint32_t)(dst.offset / dst.elemsize),
                                  (uint32_t)c.target_w, (uint32_t)(c.w * c.plan.in),
                                  (uint32_t)c.plan.in,  (uint32_t)c.w - 1,
                                  (uint32_t)c.h - 1,    (uint32_t)image,
                                  (uint32_t)c.plan.out};
    c.push_formats(c.plan.out, steps, &push);
    push.insert(push.end(), c.yuv, c.yuv + 8);
    return list.dispatch_linear(
        {Shader::pixels_in, storage_of(dst), 2, {c.resized(), c.yuv_bytes > 0}},
        {block_of(words), block_of(dst)}, push, count);
}

static int record_to(CommandList& list, const VulkanDevice& vkdev, const VkMat& src,
                     unsigned char* pixels, int type, int stride, const VkPixelSteps& steps,
                     VkAllocator* staging) {
    const GpuDevice& device = *vkdev.gpu();
    Conversion c = {};
    c.function = "record_to_pixels";
    if (!make_plan(type, c.plan, c.function)) return kError;
    if (!is_image(src) || src.c < c.plan.in || steps.roiw || steps.yuv) {
        QUOLL_LOGE(
            "[VkCompute] record_to_pixels: expected one f32 or f16 image of w, h and %d channels "
            "with elempack 1, no rectangle and no YUV, got %d axes, %d channels, elempack %d, %d "
            "images "
            "of "
            "%s",
            c.plan.in, src.dims, src.c, src.elempack, src.n, dtype_name(src.dtype));
        return kError;
    }
    if (!is_on(src, device, c.function)) return kError;
    c.w = src.w, c.h = src.h;
    if (!prepare_target(steps, &c)) return kError;
    const size_t row = (size_t)c.target_w * c.plan.out, bytes = row * c.target_h;
    if (stride == 0 && row <= 0x7fffffff) stride = (int)row;
    if (!valid_image(pixels, c.target_w, c.target_h, stride, c.plan.out, c.function)) return kError;
    QUOLL_RETURN_IF_ERROR(check_sizes(device, bytes, c.function));
    VkMat table((int)std::max<size_t>(c.table_words(), 4), (size_t)4, staging);
    VkMat made((int)words_of(bytes), (size_t)4, staging);
    if (!table.mapped_ptr() || !made.mapped_ptr()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(c.write_table((uint32_t*)table.mapped_ptr()));
    list.keep(std::make_shared<VkMat>(table));
    list.keep(std::make_shared<VkMat>(src));
    const size_t count = words_of(bytes);
    std::vector<uint32_t> push = {(uint32_t)count,      (uint32_t)(src.offset / src.elemsize),
                                  (uint32_t)c.target_w, (uint32_t)bytes,
                                  (uint32_t)c.plan.out, (uint32_t)c.w - 1,
                                  (uint32_t)c.h - 1,    (uint32_t)c.w,
                                  (uint32_t)src.cstep};
    c.push_formats(c.plan.in, steps, &push);
    const int height = c.target_h;
    list.then([made, pixels, stride, row, height]() mutable {
        for (int y = 0; y < height; y++)
            memcpy(pixels + (ptrdiff_t)y * stride,
                   (const unsigned char*)made.mapped_ptr() + (size_t)y * row, row);
        return (int)kOk;
    });
    return list.dispatch_linear({Shader::pixels_out, storage_of(src), 3, {c.resized()}},
                                {block_of(table), block_of(src), block_of(made)}, push, count);
}

int VkCompute::record_from_pixels(const unsigned char* pixels, int type, int w, int h, int stride,
                                  VkMat& dst, const Option& opt, const VkPixelSteps& steps) {
    if (!records("record_from_pixels")) return kError;
    return noted(record_from(*list_, *vkdev, pixels, type, w, h, stride, dst, opt, steps,
                             or_own(opt.staging_vkallocator, *vkdev, true),
                             or_own(opt.blob_vkallocator, *vkdev, false)));
}

int VkCompute::record_to_pixels(const VkMat& src, unsigned char* pixels, int type, int stride,
                                const Option& opt, const VkPixelSteps& steps) {
    if (!records("record_to_pixels")) return kError;
    return noted(record_to(*list_, *vkdev, src, pixels, type, stride, steps,
                           or_own(opt.staging_vkallocator, *vkdev, true)));
}

}  // namespace quoll

#endif
