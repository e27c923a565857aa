#include "plan/execution_plan.h"

#include <algorithm>
#include <unordered_map>

#include "layer/common/built_layers.h"
#include "layer/common/schema.h"
#include "layer/common/stored.h"
#include "layer/control/input.h"
#include "layer/control/loop.h"
#include "layer/control/split.h"
#include "layer/elementwise/select.h"
#include "layer/tensor/concat.h"
#include "plan/batch_slot.h"
#include "plan/growth.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

// How many segments are kept per first step: enough for an image pyramid.
const size_t kSegments = 8;
// How many plans of a net are kept: there is one for each requested blob, and for each branch and
// loop body.
const size_t kPlans = 256;

// The first of the list that `is` accepts, moved to its end; null if there is none.
template <class T, class Is>
std::shared_ptr<const T> find_and_move_back(std::vector<std::shared_ptr<const T>>* list, Is is) {
    const auto found = std::find_if(list->begin(), list->end(),
                                    [&](const std::shared_ptr<const T>& p) { return is(*p); });
    if (found == list->end()) return nullptr;
    std::rotate(found, found + 1, list->end());
    return list->back();
}

template <class T>
void keep(std::vector<std::shared_ptr<const T>>* list, size_t most,
          const std::shared_ptr<const T>& one) {
    if (list->size() == most) list->erase(list->begin());
    list->push_back(one);
}

}  // namespace

const Select* as_select(const Layer& layer) {
    return layer.bottoms.size() < 3 ? nullptr : as<Select>(&layer);
}

const LoopEnd* as_loop(const NetGraph& graph, const Layer& layer) {
    const LoopEnd* end = as<LoopEnd>(&layer);
    if (!end || layer.bottoms.size() < 2) return nullptr;
    const Layer* first = graph.layers[graph.blobs[layer.bottoms[0]].producer];
    return as<LoopStart>(first) && first->tops[0] == layer.bottoms[0] ? end : nullptr;
}

bool is_input_layer(const Layer& layer) { return layer.bottoms.empty() && as<Input>(&layer); }

bool lacks_values(const Layer& layer, const Shape& shape) {
    return shape.dims > 0 && shape.total() == 0 &&
           (!layer.support_zero_size || (shape.n == 0 && !layer.support_batch));
}

void input_dtypes(const Layer& layer, std::vector<Shape>* inputs) {
    DType stored = DType::f32;
    for (Shape& s : *inputs) {
        if (is_storage_type(s.dtype) && !accepts_float(layer, s.dtype)) s.dtype = DType::f32;
        if (is_storage_type(s.dtype)) stored = s.dtype;
    }
    for (Shape& s : *inputs)
        if (s.dtype == DType::f32 && s.total() > 0) s.dtype = stored;
}

// ---------------------------------------------------------------- order

ExecutionPlan::ExecutionPlan(const NetGraph& graph, const std::vector<int>& wanted,
                             const std::vector<int>& given, const PlanOptions& options)
    : graph_(graph), wanted_(wanted), given_(given), options_(options) {
    find_order();
    find_last_reads();
    segments_.resize(order_.size());
    positions_.assign(graph_.layers.size(), (size_t)-1);
    for (size_t i = 0; i < order_.size(); i++) positions_[order_[i]] = i;
}

// Whether the first input of the layer is another one of its inputs, too.
static bool is_read_again(const Layer& layer) {
    return std::count(layer.bottoms.begin(), layer.bottoms.end(), layer.bottoms[0]) > 1;
}

// Depth-first on an explicit stack: graphs may be deep.
void ExecutionPlan::find_order() {
    enum : char { kUnseen, kInputsAskedFor, kInOrder };
    std::vector<char> there(graph_.blobs.size(), 0), state(graph_.layers.size(), kUnseen);
    for (int id : given_) there[id] = 1;
    std::vector<int> stack;
    for (size_t i = wanted_.size(); i-- > 0;) stack.push_back(graph_.blobs[wanted_[i]].producer);
    while (!stack.empty()) {
        const int index = stack.back();
        if (state[index] != kUnseen) {
            stack.pop_back();
            if (state[index] == kInputsAskedFor) order_.push_back(index);
            state[index] = kInOrder;
            continue;
        }
        state[index] = kInputsAskedFor;
        const Layer& layer = *graph_.layers[index];
        const bool only_first = as_select(layer) || as_loop(graph_, layer);
        for (size_t i = only_first ? 1 : layer.bottoms.size(); i-- > 0;) {
            const int producer = graph_.blobs[layer.bottoms[i]].producer;
            if (!there[layer.bottoms[i]] && state[producer] == kUnseen) stack.push_back(producer);
        }
    }
}

void ExecutionPlan::find_last_reads() {
    size_t reads = 0;
    for (int index : order_) {
        first_read_.push_back(reads);
        reads += graph_.layers[index]->bottoms.size();
    }
    last_reads_.assign(reads, 0);
    std::vector<char> read_later(graph_.blobs.size(), 0);
    for (size_t step = order_.size(); step-- > 0;) {
        const Layer& layer = *graph_.layers[order_[step]];
        const bool only_first = as_select(layer) || as_loop(graph_, layer);
        // What a choice chooses may be its condition, too.
        if (only_first && is_read_again(layer)) read_later[layer.bottoms[0]] = 1;
        for (size_t i = only_first ? 1 : layer.bottoms.size(); i-- > 0;) {
            char& later = read_later[layer.bottoms[i]];
            last_reads_[first_read_[step] + i] = !later;
            later = 1;
        }
    }
}

// ---------------------------------------------------------------- segments

class ExecutionPlan::Compiler {
public:
    // like: a segment with the same first step, for other sizes; null: there is none. growth: what
    // has grown since then.
    Compiler(const ExecutionPlan& plan, const std::vector<Mat>& blobs, const Option& opt,
             const PlanSegment* like, const Growth& growth)
        : plan_(plan),
          graph_(plan.graph_),
          blobs_(blobs),
          opt_(opt),
          like_(like),
          regions_(graph_, plan.wanted_, plan.options_.joined, plan.options_.recorded) {
        for (size_t i = 0; i < growth.axes.size(); i++)
            if (growth.axes[i] >= 0) grows_.emplace_back(like->reads[i].first, growth.axes[i]);
    }

    std::shared_ptr<const PlanSegment> compile(size_t first) {
        const std::shared_ptr<PlanSegment> segment = std::make_shared<PlanSegment>();
        segment_ = segment.get();
        segment->first = segment->end = first;
        if (like_) segment->steps.reserve(like_->steps.size()), known_.reserve(like_->steps.size());
        add_steps();
        if (graph_.has_backends())
            compile_regions();
        else if (kRunsItems && plan_.options_.joined && plan_.options_.num_threads == 1)
            segment->items = find_item_stretch(plan_, graph_, *segment);
        segment->memory =
            plan_segment_memory(plan_, graph_, *segment, like_ ? like_->memory.get() : nullptr);
        return segment;
    }

private:
    // kBefore: made by an earlier step, or given. The others are made within the segment.
    enum State : char { kBefore, kRead, kKnown, kUnknown };

    void add_steps();
    bool add(const Layer& layer);
    bool is_done(const Layer& layer) const;
    void read(int blob);
    bool repeat_step(const Layer& layer);
    void plan_layer(const Layer& layer, PlanSegment::Step* step);
    void plan_layouts(const Layer& layer, const std::vector<Shape>& out, PlanSegment::Step* step);
    int count_planar_readers(int blob) const;
    void keep_layouts(const Layer& layer, const StepLayout& layout);
    void set_outputs(const Layer& layer, const std::vector<Shape>& out);
    void offer_to_backends(const Layer& layer);
    bool stored_shapes(const std::vector<int>& blobs, State known_by, std::vector<Shape>* shapes);
    void compile_regions();

    std::shared_ptr<const ConcatElision> aliases() const;

    // What is known of a blob that the segment reads or makes.
    struct Known {
        State state = kBefore;
        Shape shape;               // as shape rules see it: f32 for 16-bit storage types
        DType dtype = DType::f32;  // that it is kept in
        int elempack = 1;
        BlobLayout layout() const {
            BlobLayout layout;
            layout.shape = shape, layout.shape.dtype = dtype, layout.elempack = elempack;
            return layout;
        }
    };

    const ExecutionPlan& plan_;
    const NetGraph& graph_;
    const std::vector<Mat>& blobs_;
    const Option& opt_;
    const PlanSegment* const like_;
    PlanSegment* segment_ = nullptr;
    bool has_concat_ = false;
    std::vector<std::pair<int, int>> grows_;  // blobs with the axes along which they do
    // Not by blob: a net of many segments has many more blobs than each of them.
    std::unordered_map<int, Known> known_;
    RegionPlanner regions_;
};

void ExecutionPlan::Compiler::add_steps() {
    LogMute quiet;  // what does not fit is found out, and said, when it runs
    while (segment_->end < plan_.order_.size() && add(*graph_.layers[plan_.order_[segment_->end]]))
        segment_->end++;
    if constexpr (kIsBuilt<Concat>) {
        if (has_concat_ && graph_.has_concats) segment_->aliases = aliases();
    }
}

std::shared_ptr<const ConcatElision> ExecutionPlan::Compiler::aliases() const {
    std::vector<Shape> shapes(blobs_.size());
    std::vector<int> packs(blobs_.size(), 1);
    for (const auto& blob : known_) {
        if (blob.second.state == kUnknown) continue;
        shapes[blob.first] = blob.second.shape;
        packs[blob.first] = blob.second.elempack;
    }
    return std::make_shared<ConcatElision>(
        plan_concat_elision(graph_.layers, graph_.consumers, shapes, packs, graph_.loaded_opt));
}

// A choice may have computed what a later step would.
bool ExecutionPlan::Compiler::is_done(const Layer& layer) const {
    return !layer.tops.empty() && std::all_of(layer.tops.begin(), layer.tops.end(), [&](int id) {
        const auto known = known_.find(id);
        const bool before = known == known_.end() || known->second.state <= kRead;
        return before && blobs_[id].dims != 0;
    });
}

void ExecutionPlan::Compiler::read(int blob) {
    Known& known = known_[blob];
    if (known.state != kBefore) return;
    known.state = kRead;
    const BlobLayout there = layout_of(blobs_[blob]);
    segment_->reads.push_back({blob, there});
    known.shape = there.shape, known.elempack = there.elempack;
    known.dtype = known.shape.dtype;
    if (is_storage_type(known.dtype)) known.shape.dtype = DType::f32;
}

// False if the layer reads what has yet to be computed before its size is known.
bool ExecutionPlan::Compiler::add(const Layer& layer) {
    std::shared_ptr<PlanSegment::Step> step;
    if (is_done(layer)) {
        for (int id : layer.tops) read(id);
    } else if (is_input_layer(layer)) {
        for (int id : layer.tops) read(id);  // optional inputs are absent
    } else if (as_select(layer) || as_loop(graph_, layer)) {
        set_outputs(layer, {});
        if (graph_.has_backends())
            regions_.add({segment_->end, plan_.order_[segment_->end], {}, {}});
    } else {
        for (int id : layer.bottoms)
            if (known_[id].state == kUnknown) return false;
        for (int id : layer.bottoms) read(id);
        if (!repeat_step(layer)) {
            step = std::make_shared<PlanSegment::Step>();
            plan_layer(layer, step.get());
            segment_->steps.push_back(step);
        }
        if (graph_.has_backends()) offer_to_backends(layer);
        has_concat_ |= as<Concat>(&layer) != nullptr;
        return true;
    }
    segment_->steps.push_back(std::make_shared<PlanSegment::Step>());
    return true;
}

// Reuses the step of the segment for other sizes if the layer's inputs are the same as there: a
// language model's next token changes the length of its caches and little else.
bool ExecutionPlan::Compiler::repeat_step(const Layer& layer) {
    if (!like_ || segment_->end >= like_->end) return false;
    const std::shared_ptr<const PlanSegment::Step>& step =
        like_->steps[segment_->end - like_->first];
    const StepLayout& layout = step->layout;
    if (layout.outputs.size() != layer.tops.size() || step->told.size() != layer.tops.size() ||
        layout.arrives.size() != layer.bottoms.size())
        return false;
    for (size_t i = 0; i < layer.bottoms.size(); i++) {
        const Known& known = known_[layer.bottoms[i]];
        if (!same_layout(known.layout(), layout.arrives[i]) || known.shape.total() == 0)
            return false;
    }
    for (int id : layer.tops)
        if (blobs_[id].dims != 0) return false;
    set_outputs(layer, step->told);
    keep_layouts(layer, layout);
    segment_->steps.push_back(step);
    return true;
}

void ExecutionPlan::Compiler::plan_layer(const Layer& layer, PlanSegment::Step* step) {
    std::vector<Shape> in, out;
    int batch = 1;
    bool without_values = false;
    for (int id : layer.bottoms) {
        in.push_back(known_[id].shape);
        step->layout.arrives.push_back(known_[id].layout());
        if (in.back().n != 1) batch = in.back().n;
        without_values |= lacks_values(layer, in.back());
    }
    const int status = infer_batch_shapes(layer, in, without_values, &out);
    if (status != kOk) out.clear();
    set_outputs(layer, out);
    if (without_values || graph_.is_off_host(plan_.order_[segment_->end])) return;
    plan_inputs(layer, &step->layout);
    for (size_t i = 0; i < in.size(); i++) in[i] = step->layout.inputs[i].shape;
    step->layout.batch = layer.support_batch ? 1 : batch;
    Option with = layer.featmask ? masked_options(layer, opt_) : opt_;
    const auto take_items = [&] {
        for (Shape& s : in) s.n = layer.support_batch ? s.n : 1;
    };
    take_items();
    step->items = items_side_by_side(layer, in, out, step->layout.batch, with);
    // Items side by side keep their blobs in their own cores' caches, which gains more than weights
    // that are read once for all of them.
    if (plans_batch(layer) && step->layout.batch > 1 && step->items.pieces == 1 && !out.empty()) {
        for (size_t i = 0; i < in.size(); i++) in[i] = step->layout.inputs[i].shape;
        // Without a plan forward() decides, and says what is wrong.
        if (layer.plan(in, with, &step->plan) != kOk) step->plan.reset();
        step->whole_batch = step->plan != nullptr;
        if (!step->whole_batch) take_items();
    }
    if (!step->whole_batch) {
        with.num_threads = step->items.threads;
        if (layer.plan(in, with, &step->plan) != kOk) step->plan.reset();
    }
    if (step->plan) step->inputs = in;
    if (out.size() != layer.tops.size()) return;
    step->told = out;
    plan_layouts(layer, out, step);
}

// Layers that would each unpack the blob before they read it; -1: some take it as it is.
int ExecutionPlan::Compiler::count_planar_readers(int blob) const {
    if (plan_.wants(blob)) return -1;
    int count = 0;
    for (int reader : graph_.consumers[blob]) {
        const Layer& layer = *graph_.layers[reader];
        if (plan_.position(reader) == (size_t)-1) return -1;
        if (!layer.support_packing) {
            count++;
            continue;
        }
        if (!as<Split>(&layer)) return -1;
        for (int top : layer.tops) {
            const int more = count_planar_readers(top);
            if (more < 0) return -1;
            count += more;
        }
    }
    return count;
}

// Finds the elempack of the layer's outputs.
void ExecutionPlan::Compiler::plan_layouts(const Layer& layer, const std::vector<Shape>& out,
                                           PlanSegment::Step* step) {
    const DType stored = storage_type(opt_);
    plan_outputs(layer, step->plan.get(), out, stored, opt_, &step->layout);
    for (size_t i = 0; i < out.size(); i++)
        if (!graph_.is_narrowed(layer.tops[i]))
            step->layout.outputs[i].shape.dtype = step->layout.makes[i].shape.dtype;
    // Inputs without values are converted by what the layer takes.
    step->layout.known =
        std::none_of(step->layout.arrives.begin(), step->layout.arrives.end(),
                     [](const BlobLayout& b) { return b.shape.dims && b.shape.total() == 0; });
    for (size_t i = 0; i < out.size(); i++) {
        BlobLayout& made = step->layout.outputs[i];
        // One conversion, where the blob is made, is cheaper than one before each reader.
        if (made.elempack > 1 && made.shares < 0 && count_planar_readers(layer.tops[i]) > 1)
            made.elempack = 1;
    }
    if (step->items.pieces <= 1)
        step->layout.overwritten = overwritten_by_batch(layer, step->layout);
    keep_layouts(layer, step->layout);
}

// Records the layouts that the next steps find.
void ExecutionPlan::Compiler::keep_layouts(const Layer& layer, const StepLayout& layout) {
    for (size_t i = 0; i < layer.tops.size(); i++) {
        Known& known = known_[layer.tops[i]];
        if (known.state != kKnown) continue;
        known.elempack = layout.outputs[i].elempack;
        known.dtype = layout.outputs[i].shape.dtype;
    }
}

void ExecutionPlan::Compiler::set_outputs(const Layer& layer, const std::vector<Shape>& out) {
    for (size_t i = 0; i < layer.tops.size(); i++) {
        const int id = layer.tops[i];
        Known& known = known_[id];
        if (known.state == kBefore && blobs_[id].dims != 0) {
            read(id);  // the user's, beside one that is wanted
            continue;
        }
        const bool told = i < out.size() && out[i].dims != 0;
        known.state = told ? kKnown : kUnknown;
        if (!told) continue;
        known.shape = out[i];
        const bool stored = out[i].dtype == DType::f32 && out[i].total() > 0;
        known.dtype = stored ? storage_type(opt_) : out[i].dtype;
    }
}

// False if some blob is absent, or of unknown size. Blobs that are made here have values.
bool ExecutionPlan::Compiler::stored_shapes(const std::vector<int>& blobs, State known_by,
                                            std::vector<Shape>* shapes) {
    for (int id : blobs) {
        const Known& known = known_[id];
        if (known.state < known_by || known.state == kUnknown) return false;
        if (known_by == kKnown && known.shape.total() == 0) return false;
        shapes->push_back(known.shape);
        shapes->back().dtype = known.dtype;
    }
    return true;
}

// Layers of the application, and layers of which the user gave an output, stay with the host.
void ExecutionPlan::Compiler::offer_to_backends(const Layer& layer) {
    SizedStep step = {segment_->end, plan_.order_[segment_->end], {}, {}};
    const bool known = layer.typeindex >= 0 && stored_shapes(layer.bottoms, kRead, &step.inputs) &&
                       stored_shapes(layer.tops, kKnown, &step.outputs);
    if (!known) step.inputs.clear(), step.outputs.clear();
    regions_.add(std::move(step));
}

void ExecutionPlan::Compiler::compile_regions() {
    segment_->regions = regions_.plan();
    segment_->left_to_host = regions_.left_to_host();
    segment_->region_of_step.assign(segment_->steps.size(), -1);
    segment_->is_inner.assign(segment_->steps.size(), 0);
    for (size_t r = 0; r < segment_->regions.size(); r++) {
        const Region& region = segment_->regions[r].region;
        for (size_t k = 0; k < region.steps.size(); k++) {
            const size_t at = segment_->regions[r].steps[k] - segment_->first;
            const std::vector<int>& inputs = region.steps[k].inputs;
            segment_->region_of_step[at] = (int)r;
            segment_->is_inner[at] = std::all_of(inputs.begin(), inputs.end(), [&](int value) {
                const RegionValue& v = region.values[value];
                return v.made >= 0 && !v.is_downloaded;
            });
        }
    }
    compile_with_room(grows_, graph_, plan_.order_, opt_, like_ ? like_->room : 0, segment_);
}

std::shared_ptr<const PlanSegment> ExecutionPlan::segment(size_t first,
                                                          const std::vector<Mat>& blobs,
                                                          const Option& opt) const {
    const auto fits = [&](const PlanSegment& s) { return quoll::is_for(s, blobs); };
    std::shared_ptr<const PlanSegment> like;
    Growth growth;
    {
        std::lock_guard<std::mutex> lock(lock_);
        const std::shared_ptr<const PlanSegment> known =
            find_and_move_back(&segments_[first], fits);
        if (known) return known;
        // The segment that goes on from the last run, else the one that was used last.
        const auto goes_on = [&](const PlanSegment& s) {
            return find_growth(s, blobs, &growth) && growth.by == s.room + 1;
        };
        if (kFollowsGrowth && graph_.has_backends())
            like = find_and_move_back(&segments_[first], goes_on);
        if (!like) growth = Growth();
        if (!like && !segments_[first].empty()) like = segments_[first].back();
    }
    const std::shared_ptr<const PlanSegment> made =
        Compiler(*this, blobs, opt, like.get(), growth).compile(first);
    std::lock_guard<std::mutex> lock(lock_);
    keep(&segments_[first], kSegments, made);
    return made;
}

std::shared_ptr<const ExecutionPlan> ExecutionPlans::get(const NetGraph& graph,
                                                         const std::vector<int>& wanted,
                                                         const std::vector<int>& given,
                                                         const PlanOptions& options) {
    std::lock_guard<std::mutex> lock(lock_);
    const std::shared_ptr<const ExecutionPlan> known = find_and_move_back(
        &plans_, [&](const ExecutionPlan& p) { return p.is_for(wanted, given, options); });
    if (known) return known;
    const std::shared_ptr<const ExecutionPlan> made =
        std::make_shared<ExecutionPlan>(graph, wanted, given, options);
    keep(&plans_, kPlans, made);
    return made;
}

}  // namespace quoll
