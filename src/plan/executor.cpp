#include "plan/executor.h"

#include <algorithm>

#include "layer/common/built_layers.h"
#include "layer/common/schema.h"
#include "plan/custom_layer.h"
#include "quoll/log.h"
#include "runtime/exceptions.h"
#include "runtime/ref_count.h"

namespace quoll {

namespace {

bool are_planned(const std::vector<Mat>& inputs, const std::vector<Shape>& planned) {
    if (inputs.size() != planned.size()) return false;
    for (size_t i = 0; i < inputs.size(); i++)
        if (inputs[i].dims == 0 ? planned[i].dims != 0 : inputs[i].logical_shape() != planned[i])
            return false;
    return true;
}

bool has_no_items(const std::vector<Mat>& blobs) {
    return std::any_of(blobs.begin(), blobs.end(), [](const Mat& m) { return m.n == 0; });
}

}  // namespace

bool Executor::owned_alone(const std::vector<Mat>& mats) {
    for (const Mat& m : mats)
        if (!m.refcount || references(m.refcount) != 1) return false;
    return true;
}

Executor::Executor(const NetGraph& graph, ExecutionPlans& plans, RunBuffers* buffers,
                   const Option& o)
    : opt(o), graph_(&graph), plans_(&plans), buffers_(buffers) {
    reset();
}

void Executor::reset() {
    blobs.assign(graph_->blobs.size(), Mat());
    is_input.assign(graph_->blobs.size(), 0);
    has_run.assign(graph_->layers.size(), 0);
    device_blobs.clear();
    finite_.clear();
}

int Executor::run(int blob) {
    const bool lightmode = opt.lightmode;
    const int status = catch_no_memory("Extractor", [&] {
        wanted_.assign(1, blob);
        return run_for(wanted_);
    });
    // A run that ended early may have left these changed.
    opt.lightmode = lightmode;
    depth_ = loop_depth_ = 0;
    end_run();
    if (item_run_) item_run_->end_run();
    for (auto it = device_blobs.begin(); it != device_blobs.end();)
        it = blobs[it->first].dims ? std::next(it) : device_blobs.erase(it);
    return status;
}

void Executor::end_run() {
    placing_ = -1;
    layer_inputs_.clear();
    layer_outputs_.clear();
    elided_.end();
    leave_arena();
}

int Executor::run_for(const std::vector<int>& wanted) {
    given_.clear();
    for (size_t i = 0; i < blobs.size(); i++)
        if (blobs[i].dims != 0) given_.push_back((int)i);
    const bool joined = !observer && !opt.check_finite;
    const std::shared_ptr<const ExecutionPlan> plan =
        plans_->get(*graph_, wanted, given_, PlanOptions(opt, joined, commands && depth_ == 0));
    std::shared_ptr<const PlanSegment> segment;
    std::vector<char> on_host;  // regions that were not run as such
    for (size_t i = 0; i < plan->order().size(); i++) {
        if (!segment || i == segment->end) {
            segment = plan->segment(i, blobs, opt);
            begin_segment(*plan, *segment);
            on_host.assign(segment->regions.size(), 0);
        }
        if (arena_ && depth_ == 0) arena_->begin_step(i - segment->first);
        if (kRunsItems && i == segment->items.first && runs_items(segment->items)) {
            QUOLL_RETURN_IF_ERROR(run_items(*plan, segment->items));
            i = segment->items.end - 1;
            continue;
        }
        const bool left =
            observer && std::find(segment->left_to_host.begin(), segment->left_to_host.end(), i) !=
                            segment->left_to_host.end();
        const Step step = {
            *plan, i, segment->step(i), left, plan->order()[i], segment->memory.get()};
        const int r = segment->region_of(i);
        QUOLL_RETURN_IF_ERROR(r < 0 ? run_step(step) : run_in_region(step, *segment, &on_host[r]));
    }
    return kOk;
}

// Allocators of the application may rely on blobs not sharing memory.
void Executor::begin_segment(const ExecutionPlan& plan, const PlanSegment& segment) {
    if (depth_ > 0) return;
    leave_arena();
    if (opt.blob_allocator != &buffers_->pool) return;
    if (opt.lightmode && segment.memory) arena_ = buffers_->begin(*segment.memory);
    if (arena_) {
        opt.blob_allocator = arena_;
        if (opt.workspace_allocator == &buffers_->pool)
            opt.workspace_allocator = arena_->workspace();
    }
    elided_.begin(segment.aliases, graph_->layers, plan.order(), opt);
}

void Executor::leave_arena() {
    if (!arena_) return;
    opt.blob_allocator = &buffers_->pool;
    if (opt.workspace_allocator == arena_->workspace()) opt.workspace_allocator = &buffers_->pool;
    buffers_->end(arena_);
    arena_ = nullptr;
}

int Executor::run_step(const Step& step) {
    const Layer& layer = *graph_->layers[step.layer];
    // What a choice had computed in the meantime is there.
    const bool done = std::all_of(layer.tops.begin(), layer.tops.end(),
                                  [&](int id) { return blobs[id].dims != 0; });
    if (done && !layer.tops.empty()) return kOk;
    if (is_input_layer(layer)) return check_inputs_given(layer, step.plan);
    if (graph_->is_off_host(step.layer)) return kNeedsHostWeights;
    const bool on_device = runs_on_device(layer);
    if (!on_device) QUOLL_RETURN_IF_ERROR(fetch_inputs(layer));
    const LoopEnd* loop = kIsBuilt<LoopEnd> ? as_loop(*graph_, layer) : nullptr;
    if (loop) return run_loop(step.layer, *loop);
    const Select* select = kIsBuilt<Select> ? as_select(layer) : nullptr;
    if (select) QUOLL_RETURN_IF_ERROR(run_choice(*select));
    if (observer) announce(step);
    if (observer) observer->before(layer);
    int status = on_device ? run_on_device(layer) : run_layer(step);
    has_run[step.layer] = 1;
    if (observer && status == kOk) observer->after(layer, layer_outputs_);
    if (status == kOk) status = check_finite_after(layer);
    layer_inputs_.clear();
    layer_outputs_.clear();
    placing_ = -1;
    return status;
}

// Tells the observer what the plan says of a layer, before it runs.
void Executor::announce(const Step& step) const {
    const Layer& layer = *graph_->layers[step.layer];
    StepLayout layout = step.sized.layout;
    layout.memory = step.memory;
    observer->planned(layer, step.sized.plan.get());
    observer->laid_out(layer, layout.known ? &layout : nullptr);
    if (step.left_to_host) observer->left_to_host(layer);
}

int Executor::check_finite_after(const Layer& layer) {
    if (!opt.check_finite) return kOk;
    finite_.after(layer, layer_outputs_);
    if (finite_.finding().empty()) return kOk;
    QUOLL_LOGE("%s", finite_.finding().c_str());
    return kError;
}

// Inputs that are read only by layers that can do without may be absent.
int Executor::check_inputs_given(const Layer& layer, const ExecutionPlan& plan) const {
    for (int id : layer.tops) {
        const std::vector<int>& readers = graph_->consumers[id];
        const bool optional =
            !plan.wants(id) && std::all_of(readers.begin(), readers.end(), [&](int r) {
                return graph_->layers[r]->support_absent_inputs;
            });
        if (blobs[id].dims == 0 && !optional)
            return layer.fail("input '%s' (%d) was not given", graph_->blobs[id].name.c_str(), id);
    }
    return kOk;
}

int Executor::run_layer(const Step& step) {
    const Layer& layer = *graph_->layers[step.layer];
    has_run[step.layer] = 1;
    int batch;
    bool without_values;
    QUOLL_RETURN_IF_ERROR(take_inputs(step, &batch, &without_values));
    placing_ = depth_ == 0 && batch == 1 && !without_values ? step.layer : -1;
    const bool no_items = without_values && !layer.support_batch && has_no_items(layer_inputs_);
    const int status = no_items                            ? forward_no_items(layer)
                       : batch > 1 && !layer.support_batch ? forward_batch(step, batch)
                                                           : forward_in_place(step);
    if (status != kOk) {
        std::string names;
        for (int id : layer.bottoms) names += " '" + graph_->blobs[id].name + "'";
        layer.fail("could not run on%s (layer %d)", names.empty() ? " no input" : names.c_str(),
                   step.layer);
        return status < 0 ? status : (int)kError;
    }
    if (layer_outputs_.size() != layer.tops.size())
        return layer.fail("expected %zu outputs, got %zu", layer.tops.size(),
                          layer_outputs_.size());
    if (observer) report_outputs(layer, step.sized.layout);
    for (size_t i = 0; i < layer_outputs_.size(); i++)
        QUOLL_RETURN_IF_ERROR(store_output(layer, i, &layer_outputs_[i]));
    return unpack_outputs(layer, step.sized.layout);
}

// Into the output's place in that of a Concat, over the inputs, or into new memory.
int Executor::forward_in_place(const Step& step) {
    const Layer& layer = *graph_->layers[step.layer];
    std::vector<Mat>& tops = layer_outputs_;
    Mat top;
    Option with = opt;
    if (placing_ < 0 || !elided_.offer(placing_, layer_inputs_, blobs, &top, &with))
        return forward(layer, &step.sized, &layer_inputs_, &tops,
                       runs_in_place(layer) && owned_alone(layer_inputs_), opt);
    tops.resize(1);
    tops[0] = static_cast<Mat&&>(top);
    const int status = forward(layer, &step.sized, &layer_inputs_, &tops, false, with);
    if (tops.empty()) tops.resize(1);
    elided_.settle(placing_, &tops[0]);
    return status;
}

int Executor::forward(const Layer& layer, const PlanSegment::Step* sized, std::vector<Mat>* bottoms,
                      std::vector<Mat>* tops, bool inplace, const Option& options) const {
    const Option masked = layer.featmask ? masked_options(layer, options) : Option(options);
    const Option& with = layer.featmask ? masked : options;
    for (const Mat& m : *bottoms)
        if (lacks_values(layer, m.logical_shape()))
            return layer.forward_empty(*bottoms, *tops, with);
    if (sized->plan && are_planned(*bottoms, sized->inputs)) {
        tops->resize(layer.tops.size());
        return layer.forward_planned(*sized->plan, *bottoms, *tops, inplace, with);
    }
    if (layer.one_blob_only) {
        tops->resize(1);
        if (!inplace) return layer.forward((*bottoms)[0], (*tops)[0], with);
        (*tops)[0] = static_cast<Mat&&>((*bottoms)[0]);
        return layer.forward_inplace((*tops)[0], with);
    }
    if (inplace && !bottoms->empty()) {
        tops->swap(*bottoms);
        return layer.forward_inplace(*tops, with);
    }
    tops->resize(layer.tops.size());
    return layer.forward(*bottoms, *tops, with);
}

}  // namespace quoll
