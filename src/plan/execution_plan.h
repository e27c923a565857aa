// How a net runs: which layers in which order, and how each of them runs on inputs of given sizes.
#ifndef QUOLL_PLAN_EXECUTION_PLAN_H
#define QUOLL_PLAN_EXECUTION_PLAN_H

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "layer/common/side_by_side.h"
#include "plan/concat_elision.h"
#include "plan/item_stretch.h"
#include "plan/layout_plan.h"
#include "plan/net_graph.h"
#include "plan/region_plan.h"
#include "plan/segment_memory.h"

namespace quoll {

class Select;
class LoopEnd;

// The layer as a Select, whose inputs behind the first are computed only when they are chosen; null
// if it is none. A check, which has two inputs, is a layer like any other.
const Select* as_select(const Layer& layer);
// The layer as the end of a loop whose start is in the graph; its other inputs are computed in each
// iteration. Null if it is none, or has no start: then it is a layer like any other.
const LoopEnd* as_loop(const NetGraph& graph, const Layer& layer);
bool is_input_layer(const Layer& layer);
// f16 and bf16: the types in which f32 blobs may be stored.
inline bool is_storage_type(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
// Whether the blob has no values and the layer cannot handle that.
bool lacks_values(const Layer& layer, const Shape& shape);
// Changes dtypes to those with which the layer runs: 16-bit inputs that it does not take are
// widened; f32 inputs beside 16-bit ones that it takes are narrowed.
void input_dtypes(const Layer& layer, std::vector<Shape>* inputs);

// The options on which plans depend.
struct PlanOptions {
    PlanOptions(const Option& opt, bool joined_regions, bool recorded_regions)
        : num_threads(opt.num_threads),
          fp16(opt.use_fp16_storage),
          bf16(opt.use_bf16_storage),
          packing(opt.use_packing_layout),
          joined(joined_regions),
          recorded(recorded_regions) {}
    bool operator==(const PlanOptions& other) const {
        return num_threads == other.num_threads && fp16 == other.fp16 && bf16 == other.bf16 &&
               packing == other.packing && joined == other.joined && recorded == other.recorded;
    }

    int num_threads;
    bool fp16, bf16, packing;
    bool joined;    // steps may share a region; not so where every layer's outputs are looked at
    bool recorded;  // what the application gives and takes is in a device's memory
};

// Consecutive steps of a plan for blobs of certain sizes. It ends before the first layer that reads
// a blob whose size is known only when it has been computed.
struct PlanSegment {
    struct Step {
        std::vector<Shape> inputs;  // as the layer gets them, of one item where it takes no batch
        bool whole_batch = false;   // by kPlansBatch: `plan` and `inputs` are of all items
        std::shared_ptr<const LayerPlan> plan;  // null: the layer has nothing to decide
        StepLayout layout;
        SideBySide items = {1, 1};  // of a batch; `plan` is for so many threads
        std::vector<Shape> told;    // of the outputs by the shape rules; empty: not all are known
    };
    const Step& step(size_t i) const { return *steps[i - first]; }
    // The index in `regions` of step i's region; -1: the host runs it.
    int region_of(size_t i) const {
        return !kHasBackends || region_of_step.empty() ? -1 : region_of_step[i - first];
    }

    size_t first = 0, end = 0;
    // Segments for other sizes share the steps whose inputs are the same.
    std::vector<std::shared_ptr<const Step>> steps;
    // The blobs that it was made for, given by the user or by earlier steps. dims 0: absent.
    std::vector<std::pair<int, BlobLayout>> reads;
    // It also serves blobs that are longer by 1 to `room` along the axes `grows`, one axis per blob
    // (-1: its size stays).
    std::vector<int> grows;
    int room = 0;
    std::shared_ptr<const ConcatElision> aliases;  // null: none
    std::vector<PlannedRegion> regions;
    std::vector<int> region_of_step;  // empty: all -1
    // For each step of a region: whether its inputs never leave the region, so that the host has
    // none of them.
    std::vector<char> is_inner;
    std::vector<size_t> left_to_host;  // RegionPlanner's
    ItemStretch items;                 // in light mode
    // Where blobs are in memory in light mode; null if no blob begins and ends within the segment.
    std::shared_ptr<const SegmentMemory> memory;
};

// The steps that compute certain blobs when certain others are given. Immutable except for its
// segments, which are added as sizes come up; any thread may use it.
class ExecutionPlan {
public:
    // given: the blobs that are given, ascending.
    ExecutionPlan(const NetGraph& graph, const std::vector<int>& wanted,
                  const std::vector<int>& given, const PlanOptions& options);
    bool is_for(const std::vector<int>& wanted, const std::vector<int>& given,
                const PlanOptions& options) const {
        return wanted_ == wanted && options_ == options && given_ == given;
    }

    bool wants(int blob) const {
        return std::find(wanted_.begin(), wanted_.end(), blob) != wanted_.end();
    }
    bool is_given(int blob) const { return std::binary_search(given_.begin(), given_.end(), blob); }
    // The layers, each after those that it reads from. What a choice or a loop computes in between
    // is not among them.
    const std::vector<int>& order() const { return order_; }
    // The position of a layer in the order; (size_t)-1 if it is not in it.
    size_t position(int layer) const { return positions_[layer]; }
    // Whether no later step reads input i of the layer.
    bool is_last_read(size_t step, size_t i) const { return last_reads_[first_read_[step] + i]; }
    // The segment that begins with step `first`, for these blobs as they are at that point.
    std::shared_ptr<const PlanSegment> segment(size_t first, const std::vector<Mat>& blobs,
                                               const Option& opt) const;

private:
    class Compiler;
    void find_order();
    void find_last_reads();

    const NetGraph& graph_;
    const std::vector<int> wanted_, given_;
    const PlanOptions options_;
    std::vector<int> order_;
    std::vector<size_t> positions_;   // of each layer
    std::vector<size_t> first_read_;  // of each step, in last_reads_
    std::vector<char> last_reads_;

    mutable std::mutex lock_;
    // By first step; the segment that was used last is at the end.
    mutable std::vector<std::vector<std::shared_ptr<const PlanSegment>>> segments_;
};

// The most recently used plans of a net.
class ExecutionPlans {
public:
    std::shared_ptr<const ExecutionPlan> get(const NetGraph& graph, const std::vector<int>& wanted,
                                             const std::vector<int>& given,
                                             const PlanOptions& options);
    void clear() { plans_.clear(); }

private:
    std::mutex lock_;
    std::vector<std::shared_ptr<const ExecutionPlan>> plans_;
};

}  // namespace quoll

#endif
