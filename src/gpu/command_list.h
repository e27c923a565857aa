// What a VkCompute records: copies between buffers, and programs that were recorded before, in
// their order, for one submission.
#ifndef QUOLL_GPU_COMMAND_LIST_H
#define QUOLL_GPU_COMMAND_LIST_H

#include <functional>
#include <memory>
#include <vector>

#include "gpu/buffer.h"
#include "gpu/pipeline.h"
#include "quoll/pipeline.h"
#include "quoll/vkmat.h"

namespace quoll {

inline VkBuffer buffer_of(const VkBufferMemory& memory) { return memory.buffer; }
// A VkMat together with what is before it in its block, for shaders of the library that add the
// offset themselves: it need not be an offset that the device accepts for a binding.
inline VkDescriptorBufferInfo block_of(const VkMat& m) {
    return {buffer_of(*m.data), m.data->offset, (m.offset + m.bytes() + 3) / 4 * 4};
}

// For one thread at a time. Functions return 0, or a negative code after a message.
class CommandList {
public:
    explicit CommandList(std::shared_ptr<GpuDevice> device) : device_(std::move(device)) {}
    ~CommandList();

    const GpuDevice& device() const { return *device_; }
    struct Copy {
        VkBuffer from;
        size_t from_offset;
        VkBuffer to;
        size_t to_offset, bytes;
    };
    // Adds the copies between VkMats of the same sizes, either of which may have gaps between items
    // or channels; or into a buffer, without gaps.
    static void add_copies(const VkMat& from, const VkMat& to, std::vector<Copy>* copies);
    static void add_copies(const VkMat& from, VkBuffer to, size_t to_offset,
                           std::vector<Copy>* copies);
    static std::vector<Copy> copies(const VkMat& from, const VkMat& to) {
        std::vector<Copy> all;
        add_copies(from, to, &all);
        return all;
    }
    // Records copies after all that was recorded before; among themselves they may run in any
    // order.
    int copy(const std::vector<Copy>& copies);
    // Records a shader of the application, after all that was recorded before.
    int dispatch(const Pipeline& pipeline, const std::vector<VkMat>& bindings,
                 const std::vector<vk_constant_type>& constants, const uint32_t groups[3]);
    // Records a shader of the library, on buffers that outlive the list's run.
    int dispatch(const PipelineKey& key, const std::vector<VkDescriptorBufferInfo>& buffers,
                 const std::vector<uint32_t>& push, uint32_t groups_x, uint32_t groups_y);
    // The same with an invocation for each index below `count` (common/index.glsl).
    int dispatch_linear(const PipelineKey& key, const std::vector<VkDescriptorBufferInfo>& buffers,
                        const std::vector<uint32_t>& push, size_t count);
    // Records command buffers that nothing else submits until this list has run or was reset; if
    // there are several, each is a submission of its own. most: as in GpuDevice::run.
    int run_recorded(const std::vector<VkCommandBuffer>& commands, int most);
    // Kept until the list has run; and what the host has to do afterwards.
    void keep(std::shared_ptr<const void> what) { kept_.push_back(std::move(what)); }
    void then(std::function<int()> task) { tasks_.push_back(std::move(task)); }
    // A task for the host while the device works.
    void meanwhile(std::function<int()> task) { meanwhile_.push_back(std::move(task)); }

    // The work groups of the application's shaders.
    uint64_t groups() const { return groups_; }
    bool empty() const { return order_.empty() && tasks_.empty(); }
    // Nothing may be recorded between the two. Work in slices has run when submit() returns.
    int submit();
    int wait();
    bool is_submitted() const { return submitted_; }
    void reset();

private:
    CommandList(const CommandList&) = delete;
    CommandList& operator=(const CommandList&) = delete;
    VkResult create();
    VkResult open();
    VkResult close();
    VkResult make_set(VkDescriptorSetLayout layout, VkDescriptorSet* set);
    int buffers_of(const std::vector<VkMat>& bindings,
                   std::vector<VkDescriptorBufferInfo>* buffers);
    struct Bound {
        VkPipeline pipeline;
        VkPipelineLayout layout;
        VkDescriptorSetLayout set_layout;
    };
    int dispatch(const Bound& bound, const std::vector<VkDescriptorBufferInfo>& buffers,
                 const void* push, size_t push_bytes, const uint32_t groups[3]);

    const std::shared_ptr<GpuDevice> device_;
    VkFence fence_ = VK_NULL_HANDLE;
    GpuDevice::Commands own_;  // of which the first used_ are recorded
    size_t used_ = 0;
    bool is_open_ = false;  // the last of them
    // What copies have touched since its last barrier, after which there is nothing else.
    struct Range {
        VkBuffer buffer;
        size_t first, end;
    };
    std::vector<Range> touched_;
    std::vector<VkCommandBuffer> order_;
    bool submitted_ = false;
    bool runs_ = false;      // there is something to wait for
    bool in_parts_ = false;  // order_ is submitted one by one
    uint64_t groups_ = 0;
    int most_ = 0;  // the least that is asked for
    std::vector<VkDescriptorPool> set_pools_;
    uint32_t sets_left_ = 0;              // in the last of them
    std::unique_ptr<GpuBuffer> nothing_;  // what empty VkMats are bound as
    std::vector<std::shared_ptr<const void>> kept_;
    std::vector<std::function<int()>> tasks_;
    std::vector<std::function<int()>> meanwhile_;
};

}  // namespace quoll

#endif
