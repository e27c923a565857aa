// Sizes that grow by one from run to run, as what a decoder keeps of the tokens before.
#ifndef QUOLL_PLAN_GROWTH_H
#define QUOLL_PLAN_GROWTH_H

#include <utility>
#include <vector>

#include "plan/execution_plan.h"

namespace quoll {

// The only back end of the library that makes use of it.
#if QUOLL_VULKAN
const bool kFollowsGrowth = true;
#else
const bool kFollowsGrowth = false;
#endif

struct Growth {
    int by = 0;             // how much longer, all that grow alike
    std::vector<int> axes;  // of each of PlanSegment::reads, which has grown; -1: none
};
// Whether the blobs that a segment reads are those that it was made for, some of them longer.
bool find_growth(const PlanSegment& segment, const std::vector<Mat>& blobs, Growth* growth);
// Whether the segment serves for these blobs.
bool is_for(const PlanSegment& segment, const std::vector<Mat>& blobs);

// Has a region compiled for its sizes, or for them and longer ones, where all that the segment
// computes is that region's and reads what grows. grows: blobs with their axes; room_before: of the
// segment for the lengths before.
void compile_with_room(const std::vector<std::pair<int, int>>& grows, const NetGraph& graph,
                       const std::vector<int>& order, const Option& opt, int room_before,
                       PlanSegment* segment);

}  // namespace quoll

#endif
