#include "plan/executor.h"
#include "runtime/exceptions.h"

#include <string.h>

#include <algorithm>
#include <atomic>

#include "layer/common/built_layers.h"
#include "layer/common/schema.h"
#include "layer/common/stored.h"
#include "layer/common/tensor.h"
#include "plan/batch_slot.h"
#include "plan/custom_layer.h"
#include "plan/growth.h"
#include "quoll/command.h"
#include "quoll/log.h"
#include "runtime/ref_count.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

bool owned_alone(const std::vector<Mat>& mats) {
    for (const Mat& m : mats)
        if (!m.refcount || references(m.refcount) != 1) return false;
    return true;
}

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

// For n items of this layout; empty where these have no values.
void create_batch(const BlobLayout& item, int n, const Option& opt, Mat* all) {
    Shape shape = item.shape;
    shape.n = n;
    if (shape.dims && shape.total() > 0) all->create(shape, item.elempack, opt.blob_allocator);
}

bool has_items_like(const Mat& all, const Mat& m) {
    return all.dims == m.dims && all.w == m.w && all.h == m.h && all.d == m.d && all.c == m.c &&
           all.elempack == m.elempack && all.dtype == m.dtype;
}

char* item_of(const Mat& all, int b) { return (char*)all.data + b * all.nstep * all.elemsize; }

bool is_in_place(const Mat& m, const Mat& all, int b) {
    return m.data == item_of(all, b) && m.cstep == all.cstep && has_items_like(all, m);
}

void copy_item(const Mat& m, int b, Mat* all) {
    for (int q = 0; q < m.c; q++)
        memcpy(item_of(*all, b) + q * all->cstep * all->elemsize,
               (const char*)m.data + q * m.cstep * m.elemsize,
               (size_t)m.w * m.h * m.d * m.elemsize);
}

int widen_all(std::vector<Mat>* blobs, const Option& opt) {
    for (Mat& m : *blobs) {
        if (!is_storage_type(m.dtype)) continue;
        if (m.empty()) {
            widen_empty(&m);
            continue;
        }
        Mat wide;
        widen_storage(m, &wide, opt);
        if (wide.empty()) return kOutOfMemory;
        m = wide;
    }
    return kOk;
}

}  // namespace

void widen_storage(const Mat& in, Mat* out, const Option& opt) {
    if (in.dtype == DType::f16)
        cast_float16_to_float32(in, *out, opt);
    else
        cast_bfloat16_to_float32(in, *out, opt);
}

void take_for_stored(Mat* m, const Option& opt) {
    if (m->untyped && m->dtype == DType::f16 && opt.use_bf16_storage && !opt.use_fp16_storage)
        m->dtype = DType::bf16;
}

void widen_empty(Mat* m) {
    if (is_storage_type(m->dtype)) m->dtype = DType::f32, m->elemsize = 4;
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
    // What a run that ended early has left.
    opt.lightmode = lightmode;
    depth_ = loop_depth_ = 0;
    placing_ = -1;
    layer_inputs_.clear();
    layer_outputs_.clear();
    elided_.end();
    leave_arena();
    for (auto it = device_blobs.begin(); it != device_blobs.end();)
        it = blobs[it->first].dims ? std::next(it) : device_blobs.erase(it);
    return status;
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

// ---------------------------------------------------------------- regions of back ends

// The first step's turn is that of all of them. on_host: whether the host runs them instead.
int Executor::run_in_region(const Step& step, const PlanSegment& segment, char* on_host) {
    const PlannedRegion& region = segment.regions[segment.region_of(step.at)];
    const Layer& layer = *graph_->layers[step.layer];
    if (step.at == region.steps[0]) QUOLL_RETURN_IF_ERROR(run_region(layer, region, on_host));
    if (*on_host) return run_step(step);
    has_run[step.layer] = 1;
    if (segment.is_inner[step.at - segment.first]) return kOk;
    for (size_t i = 0; i < layer.bottoms.size(); i++)
        if (opt.lightmode && is_read_no_more(step, i)) blobs[layer.bottoms[i]].release();
    return kOk;
}

int Executor::run_region(const Layer& first, const PlannedRegion& region, char* on_host) {
    if (!region.compiled) {
        *on_host = falls_back(first, region, kOutOfMemory);
        return *on_host ? (int)kOk
                        : first.fail("the back end '%s' could not be made ready for it",
                                     region.backend->name());
    }
    *on_host = !are_as_planned(region);
    if (*on_host) return kOk;
    if (observer) observer->runs_on(first, region.backend->name());
    if (observer) observer->before(first);
    // Within a loop the next iteration may want on the host what this one makes.
    const bool records = commands && depth_ == 0 && region.compiled->records();
    int status = records ? record_region(region) : run_compiled(region);
    if (falls_back(first, region, status)) {
        *on_host = true;
        layer_outputs_.clear();
        return kOk;
    }
    if (status == kOk && observer) observer->after(first, layer_outputs_);
    if (status == kOk) status = check_finite_after(first);
    layer_outputs_.clear();
    return status;
}

bool Executor::falls_back(const Layer& first, const PlannedRegion& region, int status) const {
    if (status != kOutOfMemory || !opt.vulkan_fallback) return false;
    QUOLL_LOGW("[%s %s] vulkan_fallback: the CPU runs it and the %zu layers behind it",
               first.type.c_str(), first.name.c_str(), region.region.steps.size() - 1);
    return true;
}

int Executor::run_compiled(const PlannedRegion& region) {
    std::vector<Mat> uploads;
    for (const RegionValue& v : region.region.values) {
        if (!v.is_uploaded()) continue;
        QUOLL_RETURN_IF_ERROR(fetch(v.blob));
        QUOLL_RETURN_IF_ERROR(take_upload(blobs[v.blob], &uploads));
    }
    QUOLL_RETURN_IF_ERROR(region.compiled->run(uploads, &layer_outputs_, opt));
    size_t next = 0;
    for (const RegionValue& v : region.region.values)
        if (v.is_downloaded) blobs[v.blob] = layer_outputs_[next++];
    return kOk;
}

// ---------------------------------------------------------------- blobs on the device

void Executor::set_device_blob(int blob, const VkMat& m) {
    blobs[blob] = m.shape();
    device_blobs[blob] = m;
}

int Executor::fetch(int blob) {
    const auto found = device_blobs.find(blob);
    if (found == device_blobs.end() || !blobs[blob].empty() || blobs[blob].dims == 0) return kOk;
    Mat values;
    QUOLL_RETURN_IF_ERROR(commands->record_clone(found->second, values, opt));
    QUOLL_RETURN_IF_ERROR(commands->submit_and_wait());
    blobs[blob] = values;
    return kOk;
}

int Executor::fetch_inputs(const Layer& layer) {
    for (int id : layer.bottoms)
        if (!device_blobs.empty()) QUOLL_RETURN_IF_ERROR(fetch(id));
    return kOk;
}

int Executor::record_region(const PlannedRegion& region) {
    std::vector<VkMat> uploads, downloads;
    for (const RegionValue& v : region.region.values) {
        if (!v.is_uploaded()) continue;
        const auto found = device_blobs.find(v.blob);
        if (found != device_blobs.end()) {
            VkMat& m = found->second;  // as regions take it, for all readers
            QUOLL_RETURN_IF_ERROR(commands->record_convert(VkMat(m), m, 1, m.dtype, opt));
            uploads.push_back(m);
            continue;
        }
        std::vector<Mat> values;
        QUOLL_RETURN_IF_ERROR(take_upload(blobs[v.blob], &values));
        uploads.emplace_back();
        QUOLL_RETURN_IF_ERROR(commands->record_clone(values[0], uploads.back(), opt));
        device_blobs[v.blob] = uploads.back();
    }
    QUOLL_RETURN_IF_ERROR(region.compiled->record(uploads, &downloads, *commands, opt));
    size_t next = 0;
    for (const RegionValue& v : region.region.values)
        if (v.is_downloaded) set_device_blob(v.blob, downloads[next++]);
    if (!observer && !opt.check_finite) return kOk;
    for (const RegionValue& v : region.region.values) {
        if (!v.is_downloaded) continue;
        QUOLL_RETURN_IF_ERROR(fetch(v.blob));
        layer_outputs_.push_back(blobs[v.blob]);
    }
    return kOk;
}

// A layer of the application's that records itself.
#if QUOLL_VULKAN
int Executor::run_on_device(const Layer& layer) {
    VkCompute own(layer.vkdev);
    VkCompute& on = commands ? *commands : own;
    std::vector<VkMat> bottoms(layer.bottoms.size()), made(layer.tops.size());
    for (size_t i = 0; i < bottoms.size(); i++)
        QUOLL_RETURN_IF_ERROR(bring_to_device(layer.bottoms[i], on, &bottoms[i]));
    QUOLL_RETURN_IF_ERROR(record_custom_layer(layer, bottoms, &made, on, opt));
    if (made.size() != layer.tops.size())
        return layer.fail("expected %zu outputs, got %zu", layer.tops.size(), made.size());
    for (size_t i = 0; i < made.size(); i++)
        if (made[i].empty())
            return layer.fail("output '%s' came out empty",
                              graph_->blobs[layer.tops[i]].name.c_str());
    return take_from_device(layer, &made, on);
}

// As f16 or f32, as the net stores floats on its device.
int Executor::bring_to_device(int blob, VkCompute& on, VkMat* m) {
    const DType stored = opt.use_fp16_storage ? DType::f16 : DType::f32;
    const auto there = device_blobs.find(blob);
    const bool is_float = blobs[blob].dtype == DType::f32 || is_storage_type(blobs[blob].dtype);
    if (there != device_blobs.end() && (!is_float || there->second.dtype == stored)) {
        *m = there->second;
        const bool has_gaps = m->cstep != (size_t)m->w * m->h * m->d;
        return has_gaps ? on.record_clone(there->second, *m, opt) : (int)kOk;
    }
    QUOLL_RETURN_IF_ERROR(fetch(blob));
    Mat values = blobs[blob];
    if (is_float && values.dtype != stored) {
        if (is_storage_type(values.dtype)) widen_storage(blobs[blob], &values, opt);
        if (stored == DType::f16) narrow(Mat(values), stored, &values, opt);
    }
    return on.record_upload(values, *m, opt);
}

// Outputs stay on the device where the run goes on recording.
int Executor::take_from_device(const Layer& layer, std::vector<VkMat>* made, VkCompute& on) {
    const bool stays = commands && depth_ == 0;
    std::vector<Mat> values(made->size());
    bool waits = false;
    for (size_t i = 0; i < made->size(); i++) {
        if (stays) {
            VkMat& m = (*made)[i];
            QUOLL_RETURN_IF_ERROR(on.record_convert(VkMat(m), m, 1, m.dtype, opt));
            set_device_blob(layer.tops[i], m);
            if (!observer && !opt.check_finite) continue;
        }
        QUOLL_RETURN_IF_ERROR(on.record_clone((*made)[i], values[i], opt));
        waits = true;
    }
    if (waits) QUOLL_RETURN_IF_ERROR(on.submit_and_wait());
    for (size_t i = 0; i < values.size() && waits; i++) {
        layer_outputs_.push_back(values[i]);
        if (!values[i].empty()) QUOLL_RETURN_IF_ERROR(store_output(layer, i, &layer_outputs_[i]));
    }
    return kOk;
}
#else
int Executor::run_on_device(const Layer&) { return kError; }
#endif

// A blob may be other than the plan was made for: of another size than a rule said, f32 because
// f16 cannot hold its values.
bool Executor::are_as_planned(const PlannedRegion& region) const {
    int longer = -1;  // what grows, by how much
    for (const RegionValue& v : region.region.values) {
        const bool empty = blobs[v.blob].empty() && !device_blobs.count(v.blob);
        if (v.is_empty() && !empty) return false;
        if (!v.is_uploaded()) continue;
        const Shape shape = empty ? Shape() : blobs[v.blob].logical_shape();
        if (kFollowsGrowth && v.grows >= 0 && longer < 0 && shape.dims == v.shape.dims)
            longer = shape.size(v.grows) - v.shape.size(v.grows);
        if (shape != (longer > 0 ? v.longer(longer) : v.shape)) return false;
    }
    return !kFollowsGrowth || longer <= region.compiled->room();
}

int Executor::take_upload(const Mat& blob, std::vector<Mat>* uploads) const {
    uploads->push_back(blob);
    if (blob.elempack != 1) convert_packing(blob, uploads->back(), 1, opt);
    return uploads->back().empty() ? (int)kOutOfMemory : (int)kOk;
}

// Users' allocators may count on blobs that do not share memory.
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
    if (observer) {
        StepLayout layout = step.sized.layout;
        layout.memory = step.memory;
        observer->planned(layer, step.sized.plan.get());
        observer->laid_out(layer, layout.known ? &layout : nullptr);
    }
    if (observer && step.left_to_host) observer->left_to_host(layer);
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

int Executor::check_finite_after(const Layer& layer) {
    if (!opt.check_finite) return kOk;
    finite_.after(layer, layer_outputs_);
    if (finite_.finding().empty()) return kOk;
    QUOLL_LOGE("%s", finite_.finding().c_str());
    return kError;
}

// Those that only layers read which can do without may be absent.
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

// ---------------------------------------------------------------- inputs

// A layer that has never run, in this plan or outside it, may still want the blob.
bool Executor::is_read_no_more(const Step& step, size_t input) const {
    const int id = graph_->layers[step.layer]->bottoms[input];
    const std::vector<int>& readers = graph_->consumers[id];
    return step.plan.is_last_read(step.at, input) && !step.plan.wants(id) && !is_input[id] &&
           std::all_of(readers.begin(), readers.end(), [&](int r) { return has_run[r]; });
}

int Executor::take_inputs(const Step& step, int* batch, bool* without_values) {
    const Layer& layer = *graph_->layers[step.layer];
    layer_inputs_.resize(layer.bottoms.size());
    *without_values = false;
    *batch = 1;
    const StepLayout& layout = step.sized.layout;
    const bool planned = layout.known && inputs_arrive(layer, layout);
    if (!planned)
        for (int id : layer.bottoms)
            *without_values |= lacks_values(layer, blobs[id].logical_shape());
    for (size_t i = 0; i < layer_inputs_.size(); i++) {
        Mat& blob = blobs[layer.bottoms[i]];
        if (opt.lightmode && is_read_no_more(step, i))
            layer_inputs_[i] = static_cast<Mat&&>(blob);
        else
            layer_inputs_[i] = blob;
        QUOLL_RETURN_IF_ERROR(planned ? convert_as_planned(layout.inputs[i], &layer_inputs_[i])
                                      : convert_input(layer, &layer_inputs_[i], *without_values));
        *batch = std::max(*batch, layer_inputs_[i].n);
    }
    return *without_values ? (int)kOk : narrow_inputs(layer);
}

// lacking: some input of the layer lacks values, so that forward_empty will run.
int Executor::convert_input(const Layer& layer, Mat* m, bool lacking) const {
    if (m->dims == 0 && layer.support_absent_inputs) return kOk;
    const bool widening = is_storage_type(m->dtype) && (lacking || !accepts_float(layer, m->dtype));
    if (m->empty() && m->dims > 0) {
        if (widening) widen_empty(m);
        return kOk;
    }
    if (m->empty()) return layer.fail("an input has no values");
    if (widening) {
        Mat wide;
        widen_storage(*m, &wide, opt);
        *m = wide;
    }
    if (m->elempack != 1 && (lacking || !layer.support_packing)) {
        Mat planar;
        convert_packing(*m, planar, 1, opt);
        *m = planar;
    }
    return m->empty() ? (int)kOutOfMemory : (int)kOk;
}

// An f32 blob beside stored ones (the user gave it, or it holds more than f16 can) is stored too
// where the layer takes both, unless that loses values: then all are f32.
int Executor::narrow_inputs(const Layer& layer) {
    DType stored = DType::f32;
    for (const Mat& m : layer_inputs_)
        if (is_storage_type(m.dtype)) stored = m.dtype;
    if (stored == DType::f32) return kOk;
    for (Mat& m : layer_inputs_) {
        if (m.dtype != DType::f32 || m.dims == 0) continue;
        if (m.empty()) {
            m.dtype = stored, m.elemsize = 2;
            continue;
        }
        Mat narrowed;
        narrow(m, stored, &narrowed, opt);
        if (narrowed.empty()) {
            layer.fail("out of memory for an input");
            return kOutOfMemory;
        }
        if (stored == DType::f16 && has_overflown(m, narrowed))
            return widen_all(&layer_inputs_, opt);
        m = narrowed;
    }
    return kOk;
}

// ---------------------------------------------------------------- layers

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

// The outputs for a batch of no items: those of one item, none of them.
int Executor::forward_no_items(const Layer& layer) {
    std::vector<Shape> in = shapes_of(layer_inputs_), out;
    for (Shape& s : in) s.n = 1;
    QUOLL_RETURN_IF_ERROR(layer.infer_empty_shapes(in, out));
    layer_outputs_.resize(out.size());
    for (size_t i = 0; i < out.size(); i++) {
        if (out[i].dims == 0) return layer.fail("an input has no values");
        out[i].n = 0;
        QUOLL_RETURN_IF_ERROR(create_tensor(out[i], &layer_outputs_[i], opt));
    }
    return kOk;
}

// Runs the layer for each item, and has the results in one Mat; inputs with n = 1 serve every item.
int Executor::forward_batch(const Step& step, int n) {
    const Layer& layer = *graph_->layers[step.layer];
    for (const Mat& m : layer_inputs_)
        if (m.n != 1 && m.n != n) return layer.fail("inputs with batch counts %d and %d", m.n, n);
    const StepLayout& layout = step.sized.layout;
    layer_outputs_.assign(layer.tops.size(), Mat());
    BatchSlot slot(opt.blob_allocator);
    Option with = opt;
    const bool into_batch = writes_into_batch(layer);
    if (into_batch) with.blob_allocator = slot.allocator();
    if (into_batch && layout.known && layout.batch == n)
        create_batch(layout.makes[0], n, opt, &layer_outputs_[0]);
    if (step.sized.item_threads > 1 && !layer_outputs_[0].empty()) {
        bool as_planned;
        QUOLL_RETURN_IF_ERROR(forward_items(step, n, &as_planned));
        if (as_planned) return kOk;
    }
    for (int b = 0; b < n; b++) {
        std::vector<Mat> bottoms, tops(layer.tops.size());
        for (const Mat& m : layer_inputs_) bottoms.push_back(m.n == 1 ? m : m.batch(b));
        if (into_batch) slot.offer(layer_outputs_[0], b, &tops[0]);
        QUOLL_RETURN_IF_ERROR(forward(layer, &step.sized, &bottoms, &tops, false, with));
        layer_outputs_.resize(tops.size());
        for (size_t i = 0; i < tops.size(); i++) {
            if (slot.holds(tops[i]) && !is_in_place(tops[i], layer_outputs_[i], b))
                tops[i] = tops[i].clone(opt.workspace_allocator);
            QUOLL_RETURN_IF_ERROR(stack_item(layer, tops[i], b, n, i));
        }
    }
    return kOk;
}

// Side by side. *as_planned: all items' output is what was expected; else it is lost.
int Executor::forward_items(const Step& step, int n, bool* as_planned) {
    const Layer& layer = *graph_->layers[step.layer];
    Mat& all = layer_outputs_[0];
    SharedAllocator blob_allocator(opt.blob_allocator);
    const int threads = step.sized.item_threads;
    const bool pooled = arena_ && opt.workspace_allocator == arena_->workspace() &&
                        arena_->make_item_pools(threads);
    std::atomic<int> status(kOk);
    std::atomic<bool> alike(true);
    run_tasks(n, threads, [&](int64_t b, int thread) {
        if (status != kOk || !alike) return;
        BatchSlot slot(&blob_allocator);
        Option with = opt;
        with.num_threads = 1;
        with.blob_allocator = slot.allocator();
        if (pooled) with.workspace_allocator = arena_->item_pool(thread);
        std::vector<Mat> bottoms, tops(1);
        for (const Mat& m : layer_inputs_) bottoms.push_back(m.n == 1 ? m : m.batch((int)b));
        slot.offer(all, (int)b, &tops[0]);
        const int result = forward(layer, &step.sized, &bottoms, &tops, false, with);
        if (result != kOk)
            status = result;
        else if (tops.size() != 1 || !has_items_like(all, tops[0]))
            alike = false;
        else if (!is_in_place(tops[0], all, (int)b))
            copy_item(tops[0], (int)b, &all);
    });
    *as_planned = alike;
    return status;
}

// Puts output i of item b of n where it belongs in layer_outputs_, unless it lies there.
int Executor::stack_item(const Layer& layer, const Mat& m, int b, int n, size_t i) {
    Mat& all = layer_outputs_[i];
    if (is_in_place(m, all, b)) return kOk;
    if (b == 0 && !has_items_like(all, m)) {
        Shape shape = m.logical_shape();
        shape.n = n;
        if (m.dims > 0 && shape.total() == 0) return create_tensor(shape, &all, opt);
        all.release();
        create_batch(layout_of(m), n, opt, &all);
        if (all.empty()) return kOutOfMemory;
    }
    if (!has_items_like(all, m))
        return layer.fail("output %zu has another shape for batch item %d", i, b);
    copy_item(m, b, &all);
    return kOk;
}

int Executor::store_output(const Layer& layer, size_t i, Mat* m) {
    const int id = layer.tops[i];
    take_for_stored(m, opt);
    if (is_input[id]) return kOk;  // the user's, beside one that is wanted
    if (m->dims == 0)
        return layer.fail("output '%s' (%d) came out empty", graph_->blobs[id].name.c_str(), id);
    const bool narrows = m->dtype == DType::f32 && storage_type(opt) != DType::f32;
    if (narrows && !m->empty() && graph_->is_narrowed(id)) {
        Mat stored;
        Option with = opt;
        const bool placed =
            placing_ >= 0 && elided_.offer(placing_, layer_inputs_, blobs, &stored, &with);
        narrow(*m, storage_type(opt), &stored, with);
        if (placed) elided_.settle(placing_, &stored);
        if (stored.empty()) return kOutOfMemory;
        // What f16 cannot hold stays f32.
        if (!opt.use_fp16_storage || !has_overflown(*m, stored)) *m = stored;
    }
    // Who looks at outputs behind the layer finds them there.
    if (observer || opt.check_finite)
        blobs[id] = *m;
    else
        blobs[id] = static_cast<Mat&&>(*m);
    return kOk;
}

}  // namespace quoll
