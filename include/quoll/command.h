// VkCompute: commands for a GPU, recorded first and run together.
//
//   quoll::VkCompute cmd(net.vulkan_device());
//   quoll::VkMat in_gpu, middle, out_gpu;
//   cmd.record_upload(in, in_gpu, opt);
//   ex1.input("data", in_gpu);
//   ex1.extract("features", middle, cmd);
//   ex2.input("features", middle);      // of another Net on the same device
//   ex2.extract("prob", out_gpu, cmd);
//   cmd.record_download(out_gpu, out, opt);
//   if (cmd.submit_and_wait() != 0) return 1;
#ifndef QUOLL_COMMAND_H
#define QUOLL_COMMAND_H

#include <vector>

#include "quoll/option.h"
#include "quoll/vkmat.h"

namespace quoll {

class CommandList;
class Pipeline;

// A push constant.
union vk_constant_type {
    int i;
    float f;
    uint32_t u32;
};

#if QUOLL_PIXEL
// Steps on the way from pixels to a VkMat or back, besides converting their format. A field of 0
// means: no such step.
struct VkPixelSteps {
    VkPixelSteps()
        : yuv(kNoYuv),
          roix(0),
          roiy(0),
          roiw(0),
          roih(0),
          target_width(0),
          target_height(0),
          mean_vals(0),
          norm_vals(0) {}
    // The input is YUV 4:2:0 in planes without gaps, and is converted to pixels first, as by
    // yuv420sp2rgb: luma, then pairs of V and U (NV21, Android's cameras) or of U and V (NV12), or
    // a plane of U and one of V (I420). type is then PIXEL_RGB or PIXEL_RGB2x, stride 0 or w. For
    // record_from_pixels only.
    enum Yuv { kNoYuv, kNv21, kNv12, kI420 };
    Yuv yuv;
    int roix, roiy, roiw, roih;       // the rectangle that is read of an image; roiw 0: all of it
    int target_width, target_height;  // resized to, bilinear, in 8 bits
    // (value - mean) * norm for each channel of the VkMat: the last step on the way to it, the
    // first step on the way from it. Copied when recorded.
    const float* mean_vals;
    const float* norm_vals;
};
#endif

// For one thread at a time. Functions return 0, or a negative code after a message; if anything
// could not be recorded, submit_and_wait() fails too. Memory that commands use is kept until they
// have run.
class VkCompute {
public:
    explicit VkCompute(const VulkanDevice* vkdev);
    // Drops what was recorded and not submitted.
    virtual ~VkCompute();

    // These copy all values, into new memory or into items of a batch of the right size. The source
    // of an upload may change as soon as the function returns. The Mat of a download is created at
    // once, unless it has the right size already, in memory of the application; submit_and_wait()
    // fills it. dst comes from opt.blob_vkallocator, or opt.blob_allocator for Mats; staging memory
    // from opt.staging_vkallocator.
    // - record_clone keeps elempack and type.
    // - record_upload makes elempack 1, and f16 from f32 with opt.use_fp16_storage if the device
    //   has it.
    // - record_download makes f32 from f16 and bf16, and elempack 1 without opt.use_packing_layout.
    // Elements that are not scalars of a type (pixels of 3 bytes) are copied as they are.
    int record_upload(const Mat& src, VkMat& dst, const Option& opt);
    int record_download(const VkMat& src, Mat& dst, const Option& opt);
    int record_clone(const Mat& src, VkMat& dst, const Option& opt);
    int record_clone(const VkMat& src, Mat& dst, const Option& opt);
    int record_clone(const VkMat& src, VkMat& dst, const Option& opt);

    // The same values with another elempack and type, converted on the device: between f32, f16,
    // bf16 and s8, and from integers to floats. Values that become s8 are rounded half away from
    // zero and clamped to [-127, 127]. If the outermost axis is not a multiple of elempack,
    // elempack stays as it is. dst is src if nothing changes. There are no gaps between the items
    // of dst.
    int record_convert(const VkMat& src, VkMat& dst, int elempack, DType dtype, const Option& opt);

#if QUOLL_PIXEL
    // Uploads an image of the host (type, w, h and stride as in Mat::from_pixels; stride: bytes of
    // a row, 0: rows without gaps) and makes a planar VkMat (w, h, channels of the target format)
    // from it on the device: what Mat::from_pixels_roi_resize and Mat::substract_mean_normalize
    // make, with the same bits. The pixels may change as soon as the function returns. dst is kept
    // if it is an f32 or f16 VkMat of the right size, such as an item of a batch; otherwise it is
    // created, as f32, or as f16 with opt.use_fp16_storage if the device has it.
    int record_from_pixels(const unsigned char* pixels, int type, int w, int h, int stride,
                           VkMat& dst, const Option& opt,
                           const VkPixelSteps& steps = VkPixelSteps());
    // Downloads one f32 or f16 image of elempack 1 as pixels, as Mat::to_pixels_resize does;
    // submit_and_wait() writes them. `steps` may not have a rectangle.
    int record_to_pixels(const VkMat& src, unsigned char* pixels, int type, int stride,
                         const Option& opt, const VkPixelSteps& steps = VkPixelSteps());
#endif

    // Runs a shader of the application (quoll/pipeline.h) on at least as many invocations as
    // `dispatcher` has w, h * d and c; `dispatcher` needs no memory. An empty VkMat is bound as a
    // few meaningless bytes.
    int record_pipeline(const Pipeline* pipeline, const std::vector<VkMat>& bindings,
                        const std::vector<vk_constant_type>& constants, const VkMat& dispatcher);

    // ncnn's forms: images are buffers here, and are bound after the others.
    int record_pipeline(const Pipeline* pipeline, const std::vector<VkMat>& buffer_bindings,
                        const std::vector<VkImageMat>& image_bindings,
                        const std::vector<vk_constant_type>& constants, const VkMat& dispatcher);
    int record_pipeline(const Pipeline* pipeline, const std::vector<VkMat>& buffer_bindings,
                        const std::vector<VkImageMat>& image_bindings,
                        const std::vector<vk_constant_type>& constants, const Mat& dispatcher);
    int record_pipeline(const Pipeline* pipeline, const std::vector<VkImageMat>& bindings,
                        const std::vector<vk_constant_type>& constants,
                        const VkImageMat& dispatcher);
    // Work groups of the application's shaders that were recorded and have not run.
    uint64_t pending_dispatch_total() const;

    // Runs what was recorded, in that order, and forgets it.
    int submit_and_wait();
    // The same in two steps, so that the host can work, or submit other VkComputes, in between.
    // Several of them run on the device at once, on as many queues as it has (4 at most). Nothing
    // may be recorded before wait(). If a net has layers on the host, or with opt.vulkan_slice_us,
    // submit() waits for part of the work.
    int submit();
    int wait();
    // Forgets what was recorded and did not run, and errors of recording.
    int reset();

    const VulkanDevice* vulkan_device() const { return vkdev; }
    // For the library.
    CommandList* list() const { return list_; }

protected:
    // Where commands run.
    const VulkanDevice* const vkdev;

private:
    VkCompute(const VkCompute&);
    VkCompute& operator=(const VkCompute&);
    int noted(int status);
    bool records(const char* what);

    CommandList* const list_;  // null: no device
    int status_;               // of recording
};

// Uploads of weights (Layer::upload_model).
class VkTransfer {
public:
    explicit VkTransfer(const VulkanDevice* device)
        : vkdev(device), commands_(device), pending_(0) {}
    virtual ~VkTransfer() {}
    // As VkCompute::record_upload, into memory that stays: f32 becomes f16 with
    // opt.use_fp16_storage. flatten: dst has one axis.
    int record_upload(const Mat& src, VkMat& dst, const Option& opt, bool flatten = true);
    int submit_and_wait() {
        pending_ = 0;
        return commands_.submit_and_wait();
    }
    int reset() {
        pending_ = 0;
        return commands_.reset();
    }
    // Bytes of the uploads that were recorded and have not run.
    uint64_t pending_upload_total() const { return pending_; }

protected:
    // Where commands run.
    const VulkanDevice* const vkdev;

private:
    VkCompute commands_;
    uint64_t pending_;
};

}  // namespace quoll

#endif
