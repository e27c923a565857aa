// Where the blobs of a segment are in one block of memory, the arena, while it runs in light mode.
#ifndef QUOLL_PLAN_SEGMENT_MEMORY_H
#define QUOLL_PLAN_SEGMENT_MEMORY_H

#include <memory>
#include <vector>

#include "plan/memory_plan.h"
#include "plan/net_graph.h"

namespace quoll {

class ExecutionPlan;
struct PlanSegment;

// Covers the blobs, and converted inputs and outputs, that begin and end within the segment. Blobs
// that share memory count as one: outputs made over inputs, views, parts of a Concat's output. What
// outlives the segment (answers, blobs for layers that run later) has memory of its own.
struct SegmentMemory {
    struct Block {
        size_t bytes;  // as Mat::create asks an allocator for
        size_t offset;
    };
    std::vector<Block> blocks;            // in the order of the steps that make them
    std::vector<size_t> first;            // of each step of the segment, and one behind the last
    std::vector<MemoryRequest> requests;  // of the blocks; steps count from the segment's first
    MemoryPlan plan;
    // The sum of all blobs, each counted by itself; and of those with memory of their own outside
    // the arena.
    size_t all_bytes = 0, own_bytes = 0;
};

// Null if there is no such blob, or there are too many to plan. like: the memory of a segment for
// other sizes, whose plan is reused if the requests are the same; null: none.
std::shared_ptr<const SegmentMemory> plan_segment_memory(const ExecutionPlan& plan,
                                                         const NetGraph& graph,
                                                         const PlanSegment& segment,
                                                         const SegmentMemory* like);

}  // namespace quoll

#endif
