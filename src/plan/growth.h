// Sizes that grow by one from run to run, such as the caches of a decoder.
#ifndef QUOLL_PLAN_GROWTH_H
#define QUOLL_PLAN_GROWTH_H

#include <utility>
#include <vector>

#include "plan/execution_plan.h"

namespace quoll {

// Vulkan is the only back end of the library that makes use of it.
#if QUOLL_VULKAN
const bool kFollowsGrowth = true;
#else
const bool kFollowsGrowth = false;
#endif

struct Growth {
    int by = 0;             // how much longer, all that grow alike
    std::vector<int> axes;  // of each of PlanSegment::reads, which has grown; -1: none
};
// Whether `blobs`, which the segment reads, have the sizes that it was made for, except that some
// are longer.
bool find_growth(const PlanSegment& segment, const std::vector<Mat>& blobs, Growth* growth);
// Whether the segment can be used for these blobs.
bool is_for(const PlanSegment& segment, const std::vector<Mat>& blobs);

// Compiles the segment's region for its sizes, and for longer ones if one region computes
// everything in the segment and reads what grows. grows: blobs with their axes; room_before: `room`
// of the segment for the lengths before.
void compile_with_room(const std::vector<std::pair<int, int>>& grows, const NetGraph& graph,
                       const std::vector<int>& order, const Option& opt, int room_before,
                       PlanSegment* segment);

}  // namespace quoll

#endif
