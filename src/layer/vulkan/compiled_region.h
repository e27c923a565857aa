// A region that was compiled for a Vulkan device.
#ifndef QUOLL_LAYER_VULKAN_COMPILED_REGION_H
#define QUOLL_LAYER_VULKAN_COMPILED_REGION_H

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/replay.h"
#include "gpu/weights.h"
#include "quoll/backend.h"
#include "quoll/vkmat.h"

namespace quoll {

class RegionCompiler;
class VulkanRegion;

// Seconds that the parts of a run took: copies by the host, the submission with all waiting for it,
// and each dispatch by the device's timestamps.
struct RegionTimes {
    double upload = 0, submission = 0, download = 0;
    std::vector<double> dispatches;
};

// While there is one, the regions that its thread runs (not those that it records) are timed, which
// takes longer.
class RegionTimer {
public:
    virtual void ran(const VulkanRegion& region, const RegionTimes& times) = 0;

protected:
    RegionTimer();
    ~RegionTimer();  // not virtual: programs have RTTI, which a class of the library lacks

private:
    RegionTimer* const outer_;
};

class VulkanRegion : public CompiledRegion, public std::enable_shared_from_this<VulkanRegion> {
public:
    VulkanRegion(std::shared_ptr<GpuDevice> device, std::shared_ptr<WeightStore> weights);
    ~VulkanRegion() override;
    int run(const std::vector<Mat>& uploads, std::vector<Mat>* downloads,
            const Option& opt) const override;
    bool records() const override { return true; }
    int record(const std::vector<VkMat>& uploads, std::vector<VkMat>* downloads,
               VkCompute& commands, const Option& opt) const override;
    int room() const override { return room_; }
    size_t arena_bytes() const override { return program_.arena_bytes; }

    // To be filled by the compiler, then finished.
    Program& program() { return program_; }
    WeightStore& constants() { return *constants_; }
    // The places of the uploads and downloads in their buffers, in the order of Region::values.
    // sizes: the shapes of all values in each size that the region has.
    int finish(const Region& region, const std::vector<std::vector<Shape>>& sizes,
               const RegionCompiler& compiler, Storage storage, const Option& opt);
    // run() with times.
    int run_timed(const std::vector<Mat>& uploads, std::vector<Mat>* downloads, const Option& opt,
                  RegionTimes* times) const;
    // The least seconds of each dispatch in some runs on zeros.
    int time_dispatches(int runs, const Option& opt, std::vector<double>* least) const;
    const Program& program() const { return program_; }
    const std::vector<const Layer*>& layers() const { return layers_; }

private:
    // each: in a submission of its own.
    int run_prepared(bool each) const;
    int divide(const Option& opt);
    // size: that of the run.
    std::unique_ptr<Replay> take(size_t size) const;
    int run_replay(Replay& replay, size_t size, const std::vector<Mat>& uploads,
                   std::vector<Mat>* downloads, const Option& opt, RegionTimes* times) const;
    template <class M>
    int find_size(const std::vector<M>& uploads, size_t* size) const;
    void give_back(std::unique_ptr<Replay> replay) const;
    struct Recorded;
    std::unique_ptr<Replay> take_recorded(size_t size,
                                          const std::vector<Replay::Given>& given) const;
    struct Recording;
    int record_caches(const std::vector<VkMat>& uploads, Recording* recording) const;
    int record_downloads(const Replay& replay, Recording* recording) const;
    int check_faults(const Replay& replay) const;
    bool is_here(const VkMat& upload, size_t index) const;
    void write_uploads(const std::vector<Mat>& uploads, unsigned char* to, int threads) const;
    int read_downloads(const unsigned char* from, size_t size, std::vector<Mat>* downloads,
                       const Option& opt) const;

    // Destroyed in the reverse order.
    const std::shared_ptr<GpuDevice> device_;
    const std::shared_ptr<WeightStore> weights_;
    std::unique_ptr<WeightStore> constants_;
    // A value in a staging buffer: without gaps.
    struct Staged {
        std::vector<Shape> shapes;  // in each size
        size_t offset;
    };
    std::vector<Staged> uploads_, downloads_;
    // Of Program::given: indexes of uploads_ (-1: none) and downloads_.
    struct Cache {
        int past, all;
        uint32_t channel_step;
    };
    std::vector<Cache> caches_;
    std::vector<const Layer*> layers_;  // of the steps
    Storage storage_ = Storage::f32;
    int room_ = 0;
    Program program_;
    // Arenas with their recordings: one for each run at a time, kMostReplays at most.
    mutable std::mutex mutex_;
    mutable std::condition_variable returned_;
    mutable std::vector<std::unique_ptr<Replay>> idle_;
    mutable int count_ = 0;
    mutable std::vector<std::unique_ptr<Replay>> recorded_;  // idle ones of record()
    mutable std::unique_ptr<Replay> timed_;                  // idle; of run_timed()
};

// What the VulkanBackend has compiled.
inline const VulkanRegion& as_vulkan(const CompiledRegion& region) {
    return static_cast<const VulkanRegion&>(region);
}

}  // namespace quoll

#endif
