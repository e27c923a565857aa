// A program recorded into a command buffer, with the memory that it works in.
#ifndef QUOLL_GPU_REPLAY_H
#define QUOLL_GPU_REPLAY_H

#include <memory>
#include <vector>

#include "gpu/buffer.h"
#include "gpu/program.h"
#include "gpu/weights.h"

namespace quoll {

// For one thread at a time. The device and the fixed buffers of the program must outlive it.
class Replay {
public:
    // Null after a message. timed: with a timestamp after each dispatch. staging: kDevice if others
    // copy to and from the buffers, with barriers of their own, in the types of blobs.
    static std::unique_ptr<Replay> create(const GpuDevice& device, const Program& program,
                                          bool timed, MemoryUse staging = MemoryUse::kUpload);
    ~Replay();

    unsigned char* upload() { return upload_->mapped(); }
    const unsigned char* download() const { return download_->mapped(); }
    // The words of Program::faults, which the caller sets to 0 before another run; null: there are
    // none.
    unsigned char* faults() const { return faults_ ? faults_->mapped() : nullptr; }
    VkBuffer upload_buffer() const { return upload_->handle(); }
    VkBuffer download_buffer() const { return download_->handle(); }
    // A buffer that a run brings (Program::given); `id` tells it from others with the same handle.
    struct Given {
        VkBuffer buffer;
        size_t offset;
        uint64_t id;
        bool operator==(const Given& other) const {
            return id == other.id && offset == other.offset;
        }
    };
    // Sets the buffers of the runs from now on; to be called before set_size(), while it does not
    // run.
    void give(const Program& program, const std::vector<Given>& given);
    bool has(const std::vector<Given>& given) const { return given_ == given; }
    // One for each submission.
    const std::vector<VkCommandBuffer>& commands() const { return commands_; }
    // Records it again for another size of the run (Dispatch::by_size), while it does not run.
    // Returns 0, or a negative code after a message.
    int set_size(const Program& program, size_t size);
    // Records for another size in addition, so that set_size() finds that done; it may be running
    // meanwhile.
    int prepare_size(const Program& program, size_t size);
    // Runs it: from what upload() holds to what download() will hold. most: as in GpuDevice::run.
    // Returns 0, or a negative code after a message.
    int run(int most = 0) const;
    // The seconds of each dispatch in the last run, if timed. Of dispatches that run at the same
    // time, the time counts for the one that ends later.
    int times(std::vector<double>* seconds) const;

private:
    Replay(const GpuDevice& device, bool narrowed)
        : device_(device), zeros_(device, 0), narrowed_(narrowed) {}
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;
    bool allocate(const Program& program, bool timed, MemoryUse staging);
    VkResult create_objects(const Program& program, bool timed);
    VkResult create_sets(const Program& program);
    void write_set(const Dispatch& dispatch, VkDescriptorSet set) const;
    VkResult allocate_commands(const Program& program, std::vector<VkCommandBuffer>* commands);
    VkResult record(const Program& program);
    VkResult record_part(const Program& program, VkCommandBuffer commands, size_t first, size_t end,
                         uint32_t part);
    void record_dispatch(VkCommandBuffer commands, const Dispatch& dispatch,
                         VkDescriptorSet set) const;

    const GpuDevice& device_;
    std::unique_ptr<GpuBuffer> arena_, upload_, download_, faults_, timed_given_;
    WeightStore zeros_;  // the counters
    Binding counters_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    std::vector<VkCommandBuffer> commands_;
    VkFence fence_ = VK_NULL_HANDLE;
    VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
    VkQueryPool queries_ = VK_NULL_HANDLE;
    uint32_t query_count_ = 0;
    size_t size_ = 0;  // -1: nothing is recorded
    // The command buffers that prepare_size() has recorded.
    std::vector<VkCommandBuffer> prepared_;
    size_t prepared_size_ = (size_t)-1;
    bool narrowed_;  // the host narrows what it uploads
    std::vector<VkDescriptorSet> sets_;
    std::vector<Given> given_;
    // By dispatch: the query behind it. It begins at the one before.
    std::vector<uint32_t> ends_;
};

}  // namespace quoll

#endif
