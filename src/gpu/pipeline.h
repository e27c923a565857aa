// Pipelines of a device, each made once and kept as long as the device.
#ifndef QUOLL_GPU_PIPELINE_H
#define QUOLL_GPU_PIPELINE_H

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <vector>

#include "gpu/device.h"
#include "gpu/shaders.h"

namespace quoll {

const int kMostBindings = 11;
// The push constants that every device has, in bytes; one range for all pipelines.
const int kPushBytes = 128;

struct PipelineKey {
    Shader shader;
    Storage storage;
    int bindings;                     // storage buffers 0, 1, ... of set 0
    std::vector<uint32_t> constants;  // specialisation constants 0, 1, ...
    bool has_first_group = false;     // dispatches may begin at another group than 0
    std::array<uint32_t, 3> first_group = {{0, 0, 0}};  // that the code itself begins at
    bool operator<(const PipelineKey& o) const { return fields() < o.fields(); }

private:
    std::tuple<const Shader&, const Storage&, const int&, const std::vector<uint32_t>&, const bool&,
               const std::array<uint32_t, 3>&>
    fields() const {
        return std::tie(shader, storage, bindings, constants, has_first_group, first_group);
    }
};

// For any number of threads.
class PipelineStore {
public:
    explicit PipelineStore(const GpuDevice& device) : device_(device) {}
    ~PipelineStore();
    bool open();

    // Gets the pipelines of the keys; missing ones are made by up to `threads` threads. Callers at
    // the same time make different ones side by side, and wait for each other's where they need the
    // same. Returns 0, or a negative code after a message.
    int get(const std::vector<PipelineKey>& keys, int threads, std::vector<VkPipeline>* pipelines);
    // Saves the driver's data on all pipelines; and adds data that was saved before.
    int save(std::vector<unsigned char>* data);
    int merge(const unsigned char* data, size_t bytes);
    size_t count();
    VkDescriptorSetLayout set_layout(int bindings) const { return sets_[bindings]; }
    VkPipelineLayout layout(int bindings) const { return layouts_[bindings]; }

private:
    VkResult create_layout(int bindings);
    VkResult create(const PipelineKey& key, VkPipeline* pipeline);
    class Claim;
    int make(const std::vector<const PipelineKey*>& keys, int threads);
    bool wait_for(const std::vector<PipelineKey>& keys, std::vector<VkPipeline>* pipelines);

    const GpuDevice& device_;
    VkPipelineCache cache_ = VK_NULL_HANDLE;
    // Pipelines are made by several threads at once, but not while others are merged into it.
    std::shared_mutex cache_mutex_;
    VkDescriptorSetLayout sets_[kMostBindings + 1] = {};
    VkPipelineLayout layouts_[kMostBindings + 1] = {};
    std::mutex mutex_;
    std::condition_variable made_;
    std::map<PipelineKey, VkPipeline> pipelines_;  // null: a thread is making it
};

}  // namespace quoll

#endif
