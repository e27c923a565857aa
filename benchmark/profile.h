// Times of each layer over many runs.
#ifndef QUOLL_BENCHMARK_PROFILE_H
#define QUOLL_BENCHMARK_PROFILE_H

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "cliffs.h"
#include "quoll/net.h"
#include "region_profile.h"

namespace quoll {

// Collects the times of the layers that Extractors of one Net run, one run after another on one
// thread.
class LayerProfile : public LayerObserver {
public:
    explicit LayerProfile(const Net& net);
    // Around each run.
    void begin_run();
    void end_run();
    void before(const Layer& layer) override;
    void after(const Layer& layer, const std::vector<Mat>& outputs) override;

    // {runs_ms: [of each run], layers: [in the order in which they ran: {type, name, macs, stride,
    // pad, dilation, filter, output: texts, "" where the operator has none; cliff: why it is one
    // (cliffs.h), or ""; start_ms, ms: [of each run]}]}
    nlohmann::json to_json() const;
    // With the layers that a Vulkan device runs in `regions`, in the times of as many `runs`. An
    // observer sees these layers one by one, each with copies of its own, so only the others' times
    // are taken from it. Each layer has `on`, "cpu" or "vulkan", in addition, and on the device
    // `dispatches`: {shader, groups, ms}. Copies, and what a submission takes beyond its
    // dispatches, are entries (upload), (wait) and (download) on "between". All begin where the one
    // before them ends.
    nlohmann::json to_json(const std::vector<RegionProfile>& regions,
                           const std::vector<double>& runs) const;

private:
    struct Record {
        const Layer* layer;
        std::vector<double> starts, times;
        std::vector<Shape> outputs;
        std::string cliff;
    };
    nlohmann::json describe(const Record& record) const;
    void add_region(const RegionProfile& region, nlohmann::json* layers) const;
    Shape input_of(const Layer& layer) const;

    const Net& net_;
    double run_begin_ = 0, layer_begin_ = 0;
    std::vector<double> runs_;
    std::vector<Record> records_;
    std::unordered_map<const Layer*, size_t> record_of_;
    BlobLayouts layouts_;
    std::unordered_map<int, Shape> shapes_;  // of blobs that layers made
};

double now_ms();

}  // namespace quoll

#endif
