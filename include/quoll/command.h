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
// What is done to pixels on their way to or from a VkMat, besides converting their format. A field
// of 0 asks for nothing.
struct VkPixelSteps {
    VkPixelSteps()
        : roix(0),
          roiy(0),
          roiw(0),
          roih(0),
          target_width(0),
          target_height(0),
          mean_vals(0),
          norm_vals(0) {}
    int roix, roiy, roiw, roih;       // the rectangle that is read of an image; roiw 0: all of it
    int target_width, target_height;  // resized to, bilinear, in 8 bits
    // (value - mean) * norm for each channel of the VkMat: behind all else on the way to it, before
    // all else on the way from it. Copied when recorded.
    const float* mean_vals;
    const float* norm_vals;
};
#endif

// For one thread at a time. Its functions return 0, or a negative code after a message; what could
// not be recorded makes submit_and_wait() fail too. Memory that commands use lives until they ran.
class VkCompute {
public:
    explicit VkCompute(const VulkanDevice* vkdev);
    // What was recorded and not submitted does not run.
    ~VkCompute();

    // Copies of all values. The source of an upload may change at once; the Mat of a download is
    // made now, unless it is one of these sizes in memory of the application's, and filled by
    // submit_and_wait(). dst comes from opt.blob_vkallocator, or opt.blob_allocator for Mats; what
    // copies need from opt.staging_vkallocator. Any elempack, made 1; types are kept, but that
    // record_download widens f16 and bf16 to f32. Elements that are no scalars of a type (pixels of
    // 3 bytes) are copied as they are.
    int record_upload(const Mat& src, VkMat& dst, const Option& opt);
    int record_download(const VkMat& src, Mat& dst, const Option& opt);
    int record_clone(const Mat& src, VkMat& dst, const Option& opt);
    int record_clone(const VkMat& src, Mat& dst, const Option& opt);
    int record_clone(const VkMat& src, VkMat& dst, const Option& opt);

#if QUOLL_PIXEL
    // An image of the host (type, w, h and stride, the bytes of a row, as Mat::from_pixels has
    // them; stride 0: rows without gaps) as a planar VkMat (w, h, channels of the target format),
    // on the device: what Mat::from_pixels_roi_resize and Mat::substract_mean_normalize make of it,
    // with the same bits. The pixels may change at once. dst is kept if it is an f32 or f16 VkMat
    // of these sizes, an item of a batch say, else made, as f32, or as f16 with
    // opt.use_fp16_storage where the device has that.
    int record_from_pixels(const unsigned char* pixels, int type, int w, int h, int stride,
                           VkMat& dst, const Option& opt,
                           const VkPixelSteps& steps = VkPixelSteps());
    // One f32 or f16 image of elempack 1 as pixels, which submit_and_wait() writes: as
    // Mat::to_pixels_resize. No rectangle.
    int record_to_pixels(const VkMat& src, unsigned char* pixels, int type, int stride,
                         const Option& opt, const VkPixelSteps& steps = VkPixelSteps());
#endif

    // A shader of the application's (quoll/pipeline.h) on as many invocations, at least, as
    // `dispatcher`, which needs no memory, has w, h * d and c. An empty VkMat is bound as a few
    // bytes that mean nothing.
    int record_pipeline(const Pipeline* pipeline, const std::vector<VkMat>& bindings,
                        const std::vector<vk_constant_type>& constants, const VkMat& dispatcher);

    // Runs what was recorded, in that order, and forgets it.
    int submit_and_wait();
    // Forgets what was recorded and did not run, and errors of recording.
    int reset();

    const VulkanDevice* vulkan_device() const { return vkdev_; }
    // For the library.
    CommandList* list() const { return list_; }

private:
    VkCompute(const VkCompute&);
    VkCompute& operator=(const VkCompute&);
    int noted(int status);

    const VulkanDevice* const vkdev_;
    CommandList* const list_;  // null: no device
    int status_;               // of recording
};

// Uploads of weights (Layer::upload_model).
class VkTransfer {
public:
    explicit VkTransfer(const VulkanDevice* vkdev) : commands_(vkdev) {}
    // As VkCompute's, into memory that stays: f32 becomes f16 with opt.use_fp16_storage. flatten:
    // dst has one axis.
    int record_upload(const Mat& src, VkMat& dst, const Option& opt, bool flatten = true);
    int submit_and_wait() { return commands_.submit_and_wait(); }
    int reset() { return commands_.reset(); }

private:
    VkCompute commands_;
};

}  // namespace quoll

#endif
