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

#include "quoll/option.h"
#include "quoll/vkmat.h"

namespace quoll {

class CommandList;

// For one thread at a time. Its functions return 0, or a negative code after a message; what could
// not be recorded makes submit_and_wait() fail too. Memory that commands use lives until they ran.
class VkCompute {
public:
    explicit VkCompute(const VulkanDevice* vkdev);
    // What was recorded and not submitted does not run.
    ~VkCompute();

    // Copies of all values. The source of an upload may change at once; the Mat of a download is
    // made now and filled by submit_and_wait(). dst comes from opt.blob_vkallocator, or
    // opt.blob_allocator for Mats; what copies need from opt.staging_vkallocator. Any elempack,
    // made 1; types are kept, but that record_download widens f16 and bf16 to f32.
    int record_upload(const Mat& src, VkMat& dst, const Option& opt);
    int record_download(const VkMat& src, Mat& dst, const Option& opt);
    int record_clone(const Mat& src, VkMat& dst, const Option& opt);
    int record_clone(const VkMat& src, Mat& dst, const Option& opt);
    int record_clone(const VkMat& src, VkMat& dst, const Option& opt);

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

}  // namespace quoll

#endif
