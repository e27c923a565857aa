#include "region_profile.h"

#include "profile.h"
#include "quoll/status.h"

#if QUOLL_VULKAN
#include <map>
#include <memory>

#include "layer/vulkan/compiled_region.h"
#endif

namespace quoll {

#if QUOLL_VULKAN

namespace {

// Those belong to the step that makes the value.
bool is_download(const Dispatch& d) {
    return d.key.shader == Shader::download || d.key.shader == Shader::download_int;
}

RegionProfile describe(const VulkanRegion& region, int count) {
    RegionProfile profile;
    const std::vector<double> none((size_t)count);
    profile.layers = region.layers();
    profile.upload = profile.submission = profile.download = none;
    for (const Dispatch& d : region.program().dispatches)
        profile.dispatches.push_back({shader_name(d.key.shader),
                                      std::to_string(d.groups[0]) + "x" +
                                          std::to_string(d.groups[1]) + "x" +
                                          std::to_string(d.groups[2]),
                                      is_download(d) ? RegionProfile::kDownload : d.step, none});
    return profile;
}

class Collector final : public RegionTimer {
public:
    Collector(int count, std::vector<RegionProfile>* profiles)
        : count_(count), profiles_(*profiles) {}
    // Times belong to this run from now on; to none if it is negative.
    void begin(int run) { run_ = run; }
    void ran(const VulkanRegion& region, const RegionTimes& times) override {
        if (run_ < 0) return;
        const auto found = index_.emplace(&region, profiles_.size());
        if (found.second) {
            kept_.push_back(region.shared_from_this());
            profiles_.push_back(describe(region, count_));
        }
        RegionProfile& profile = profiles_[found.first->second];
        profile.upload[run_] += times.upload * 1e3;
        profile.submission[run_] += times.submission * 1e3;
        profile.download[run_] += times.download * 1e3;
        for (size_t i = 0; i < times.dispatches.size(); i++)
            profile.dispatches[i].ms[run_] += times.dispatches[i] * 1e3;
    }

private:
    const int count_;
    std::vector<RegionProfile>& profiles_;
    std::map<const VulkanRegion*, size_t> index_;
    std::vector<std::shared_ptr<const VulkanRegion>> kept_;  // so that no other has the address
    int run_ = -1;
};

}  // namespace

int profile_regions(int count, const std::function<int()>& run, std::vector<RegionProfile>* regions,
                    std::vector<double>* runs) {
    Collector collector(count, regions);
    QUOLL_RETURN_IF_ERROR(run());  // records what is timed
    for (int i = 0; i < count; i++) {
        collector.begin(i);
        const double begin = now_ms();
        QUOLL_RETURN_IF_ERROR(run());
        runs->push_back(now_ms() - begin);
    }
    return kOk;
}

#else

int profile_regions(int, const std::function<int()>&, std::vector<RegionProfile>*,
                    std::vector<double>*) {
    return kOk;
}

#endif

}  // namespace quoll
