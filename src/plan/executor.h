// Runs the steps of execution plans on the blobs of one inference.
#ifndef QUOLL_PLAN_EXECUTOR_H
#define QUOLL_PLAN_EXECUTOR_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/elided_concats.h"
#include "plan/execution_plan.h"
#include "plan/finite_check.h"
#include "plan/run_buffers.h"
#include "quoll/net.h"
#include "quoll/vkmat.h"

namespace quoll {

class Executor {
public:
    // An executor of a loaded net. buffers: serves Extractors that were given no allocators.
    Executor(const NetGraph& graph, ExecutionPlans& plans, RunBuffers* buffers, const Option& opt);

    void reset();
    // Computes a blob of the graph, unless it is there already. Returns 0, kNeedsHostWeights, or a
    // negative code after a message.
    int run(int blob);

    Option opt;
    LayerObserver* observer = nullptr;
    std::vector<Mat> blobs;
    std::vector<char> is_input;  // blobs that the user gave
    // Blobs in the memory of a device: their Mat has sizes but no values until a layer on the host
    // reads it.
    std::map<int, VkMat> device_blobs;
    void set_device_blob(int blob, const VkMat& m);
    // Where regions are recorded whose back ends can record; it is submitted when the host needs
    // what they make. Null: nothing is recorded.
    VkCompute* commands = nullptr;
    // Downloads a blob that is on the device.
    int fetch(int blob);
    std::vector<char> has_run;  // layers that have run at least once

private:
    // A step while it runs.
    struct Step {
        const ExecutionPlan& plan;
        size_t at;
        const PlanSegment::Step& sized;
        bool left_to_host;
        int layer;
        const SegmentMemory* memory;
    };

    int run_for(const std::vector<int>& wanted);
    void begin_segment(const ExecutionPlan& plan, const PlanSegment& segment);
    void leave_arena();
    void end_run();
    int run_step(const Step& step);
    void announce(const Step& step) const;
    int run_layer(const Step& step);
    int forward_in_place(const Step& step);
    int forward(const Layer& layer, const PlanSegment::Step* sized, std::vector<Mat>* bottoms,
                std::vector<Mat>* tops, bool inplace, const Option& with) const;
    int check_finite_after(const Layer& layer);
    int check_inputs_given(const Layer& layer, const ExecutionPlan& plan) const;

    // executor_blobs.cpp
    bool is_read_no_more(const Step& step, size_t input) const;
    int take_inputs(const Step& step, int* batch, bool* without_values);
    int convert_input(const Layer& layer, Mat* m, bool lacking = false) const;
    int narrow_inputs(const Layer& layer);
    int store_output(const Layer& layer, size_t i, Mat* m);

    // layouts.cpp
    bool inputs_arrive(const Layer& layer, const StepLayout& planned) const;
    int convert_as_planned(const BlobLayout& to, Mat* m) const;
    int unpack_outputs(const Layer& layer, const StepLayout& planned);
    void report_outputs(const Layer& layer, const StepLayout& planned) const;
    void report(const Layer& layer, const char* what, size_t i, const BlobLayout& planned,
                const Mat& m) const;

    // executor_batches.cpp
    int forward_no_items(const Layer& layer);
    int forward_batch(const Step& step, int n);
    bool begin_batch(const Step& step, int n);
    static bool owned_alone(const std::vector<Mat>& mats);
    int forward_whole(const Step& step);
    int forward_items(const Step& step, int n, bool* as_planned);
    int stack_item(const Layer& layer, const Mat& m, int b, int n, size_t i);

    // executor_items.cpp
    bool runs_items(const ItemStretch& items) const;
    int run_items(const ExecutionPlan& plan, const ItemStretch& items);
    int run_item(const ItemStretch& items, int b);
    int keep_item(const ItemStretch& items, int b, int n);
    void leave_items(const ExecutionPlan& plan, const ItemStretch& items);

    // executor_regions.cpp
    int run_in_region(const Step& step, const PlanSegment& segment, char* on_host);
    int run_region(const Layer& first, const PlannedRegion& region, char* on_host);
    bool falls_back(const Layer& first, const PlannedRegion& region, int status) const;
    bool are_as_planned(const PlannedRegion& region) const;
    int run_compiled(const PlannedRegion& region);
    int record_region(const PlannedRegion& region);
    int take_upload(const Mat& blob, std::vector<Mat>* uploads) const;

    // executor_device.cpp
    int fetch_inputs(const Layer& layer);
    int run_on_device(const Layer& layer);
    int bring_to_device(int blob, VkCompute& on, VkMat* m);
    int take_from_device(const Layer& layer, std::vector<VkMat>* made, VkCompute& on);

    // control_flow.cpp
    int run_choice(const Select& layer);
    int run_within(std::vector<int> wanted);
    int run_loop(int index, const LoopEnd& end);
    int run_iterations(const Layer& start, const LoopEnd& end, const std::vector<int>& body,
                       std::vector<std::vector<Mat>>* scans);
    int run_iteration(const Layer& start, const LoopEnd& end, int number,
                      const std::vector<int>& body, double* going,
                      std::vector<std::vector<Mat>>* scans);
    std::vector<int> blobs_of_body(const Layer& start, const Layer& end) const;

    const NetGraph* graph_;
    ExecutionPlans* plans_;
    RunBuffers* buffers_;
    Arena* arena_ = nullptr;  // that the segment runs in; null: none
    int loop_depth_ = 0;
    int depth_ = 0;     // of run_within()
    int placing_ = -1;  // the layer that runs, if its output may be given a place
    ElidedConcats elided_;
    FiniteCheck finite_;
    // Runs stretches of steps for one item; null: there was none yet.
    std::shared_ptr<Executor> item_run_;
    // Working memory of a run, kept so that the next run need not allocate it.
    std::vector<int> wanted_, given_;
    std::vector<Mat> layer_inputs_, layer_outputs_;
};

// Converts f16 and bf16 to f32; others are left alone.
void widen_storage(const Mat& in, Mat* out, const Option& opt);
// Gives an untyped Mat of 16-bit values the type that blobs are stored as.
void take_for_stored(Mat* m, const Option& opt);
// Widens a Mat without values.
void widen_empty(Mat* m);

}  // namespace quoll

#endif
