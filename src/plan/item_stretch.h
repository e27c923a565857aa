// Stretches of steps that run for one item of a batch after the other.
#ifndef QUOLL_PLAN_ITEM_STRETCH_H
#define QUOLL_PLAN_ITEM_STRETCH_H

#include <cstddef>
#include <vector>

namespace quoll {

class ExecutionPlan;
struct NetGraph;
struct PlanSegment;

// Small libraries leave it out.
#if defined(QUOLL_NO_TILE_UNITS)
const bool kRunsItems = false;
#else
const bool kRunsItems = true;
#endif

// Consecutive steps of a segment. What they make for an item is still in the caches when they read
// it, and needs memory for one item. Weights are read anew for each item instead.
struct ItemStretch {
    bool contains(size_t step) const { return first <= step && step < end; }

    size_t first = 0, end = 0;  // steps of the plan; equal: there is none
    std::vector<int> reads;     // blobs from before the stretch
    std::vector<int> makes;     // those that others read, or that are wanted
};

// For one thread: several have items of their own anyway, layer by layer.
ItemStretch find_item_stretch(const ExecutionPlan& plan, const NetGraph& graph,
                              const PlanSegment& segment);

}  // namespace quoll

#endif
