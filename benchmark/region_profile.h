// Times of what a Vulkan device runs, by its timestamps.
#ifndef QUOLL_BENCHMARK_REGION_PROFILE_H
#define QUOLL_BENCHMARK_REGION_PROFILE_H

#include <functional>
#include <string>
#include <vector>

#include "quoll/layer.h"

namespace quoll {

// A region that the device runs in one go. All times in milliseconds, of each run; those of several
// calls in a run, as in a loop, are added up.
struct RegionProfile {
    // Steps of dispatches that only bring uploads into the layout of the device, and back.
    static constexpr int kUpload = -1, kDownload = -2;
    struct Dispatch {
        std::string shader, groups;
        int step;  // of `layers`, or one of those below
        std::vector<double> ms;
    };
    std::vector<const Layer*> layers;
    std::vector<Dispatch> dispatches;
    // Copies by the host, and the time from the submission to its end.
    std::vector<double> upload, submission, download;
};

// Calls `run`, which runs a net on this thread, `count` times. Fails, after a message, if the
// device has no timestamps. *runs: of each call.
int profile_regions(int count, const std::function<int()>& run, std::vector<RegionProfile>* regions,
                    std::vector<double>* runs);

}  // namespace quoll

#endif
