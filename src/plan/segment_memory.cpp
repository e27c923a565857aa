#include "plan/segment_memory.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "layer/control/memorydata.h"
#include "layer/nn/convolution.h"
#include "plan/batch_slot.h"
#include "plan/execution_plan.h"

namespace quoll {

namespace {

// Planning takes time that grows with the square of the number of blocks.
const size_t kMostBlocks = 10000;

// The bytes for which Mat::create asks an allocator.
size_t block_bytes(const BlobLayout& b) {
    Shape s = b.shape;
    if (s.total() == 0) return 0;
    s.set_size(0, s.size(0) / b.elempack);
    const size_t element = dtype_size(s.dtype) * b.elempack;
    const size_t step = Mat::channel_step(s.dims, s.w, s.h, s.d, element) * element;
    const size_t item = s.n > 1 ? align_size(step * s.c, 16) : step * s.c;
    return kMallocAlign + item * s.n;
}

bool contains(const std::vector<int>& list, int id) {
    return std::find(list.begin(), list.end(), id) != list.end();
}

size_t index_of(const std::vector<int>& list, int id) {
    return (size_t)(std::find(list.begin(), list.end(), id) - list.begin());
}

// Goes through the steps without values: finds out which blobs share memory, and from when to when
// it is held.
class Simulation {
public:
    Simulation(const ExecutionPlan& plan, const NetGraph& graph, const PlanSegment& segment)
        : plan_(plan), graph_(graph), segment_(segment) {}
    std::shared_ptr<const SegmentMemory> run(const SegmentMemory* like);

private:
    struct Memory {
        size_t bytes = 0;
        int first = -1, last = -1;  // step; first -1: not made within the segment
        int holders = 0;
    };

    void find_places();
    void run_step(size_t at);
    void run_items();
    void take_inputs(const Layer& layer, size_t at);
    bool is_released(const Layer& layer, size_t at, size_t input) const;
    void convert(size_t input, const BlobLayout& to);
    void make_outputs(const Layer& layer, const StepLayout& layout);
    int made_memory(const Layer& layer, const StepLayout& layout, size_t i, bool alone);
    int output_memory(const Layer& layer, const StepLayout& layout, size_t i, bool alone);
    int placed_memory(const Layer& layer, const BlobLayout& made);
    void keep_output(int blob, int memory);
    int memory_of(int blob);
    int add(const BlobLayout& layout);
    void hold(int memory) { memories_[memory].holders++; }
    void let_go(int memory) {
        if (--memories_[memory].holders == 0) memories_[memory].last = step_;
    }
    std::shared_ptr<const SegmentMemory> result(const SegmentMemory* like) const;

    const ExecutionPlan& plan_;
    const NetGraph& graph_;
    const PlanSegment& segment_;
    std::unordered_set<int> is_open_;  // Concats that join what lies in their output
    std::vector<int> roots_;  // memory of each Concat's output that holds others', -1: none yet
    std::vector<Memory> memories_;
    std::unordered_map<int, int> memory_of_;  // blob
    std::vector<int> inputs_;                 // memory of the layer's inputs
    std::vector<size_t> first_;               // of each step, in memories_
    size_t all_bytes_ = 0;
    int step_ = 0;
};

// As ElidedConcats::begin.
void Simulation::find_places() {
    if (!segment_.aliases) return;
    const ConcatElision& aliases = *segment_.aliases;
    roots_.assign(aliases.roots.size(), -1);
    for (size_t i = segment_.end; i-- > segment_.first;) {
        const int index = plan_.order()[i];
        const std::vector<int>& tops = graph_.layers[index]->tops;
        if (tops.size() != 1 || aliases.aliases[tops[0]].root < 0) continue;
        const ConcatElision::Alias& alias = aliases.aliases[tops[0]];
        if (alias.has_parts && (alias.concat == index || is_open_.count(alias.concat)))
            is_open_.insert(index);
    }
}

int Simulation::add(const BlobLayout& layout) {
    Memory memory;
    memory.bytes = block_bytes(layout), memory.first = step_;
    memories_.push_back(memory);
    return (int)memories_.size() - 1;
}

// A blob from before the segment has an owner elsewhere if the user gave it.
int Simulation::memory_of(int blob) {
    const auto found = memory_of_.find(blob);
    if (found != memory_of_.end()) return found->second;
    Memory memory;
    memory.holders = plan_.is_given(blob) ? 2 : 1;
    memories_.push_back(memory);
    return memory_of_[blob] = (int)memories_.size() - 1;
}

// As Executor::is_read_no_more when only this plan has run.
bool Simulation::is_released(const Layer& layer, size_t at, size_t input) const {
    const int id = layer.bottoms[input];
    const std::vector<int>& readers = graph_.consumers[id];
    return plan_.is_last_read(at, input) && !plan_.wants(id) && !plan_.is_given(id) &&
           std::all_of(readers.begin(), readers.end(),
                       [&](int r) { return plan_.position(r) <= at; });
}

void Simulation::convert(size_t input, const BlobLayout& to) {
    const int made = add(to);
    hold(made);
    let_go(inputs_[input]);
    inputs_[input] = made;
}

void Simulation::take_inputs(const Layer& layer, size_t at) {
    const StepLayout& layout = segment_.step(at).layout;
    inputs_.clear();
    for (size_t i = 0; i < layer.bottoms.size(); i++) {
        const int id = layer.bottoms[i], memory = memory_of(id);
        inputs_.push_back(memory);
        hold(memory);
        if (is_released(layer, at, i)) {
            let_go(memory);
            memory_of_.erase(id);
        }
        if (!layout.known) continue;
        BlobLayout now = layout.arrives[i];
        const BlobLayout& taken = layout.inputs[i];
        if (is_storage_type(now.shape.dtype) && taken.shape.dtype == DType::f32) {
            now.shape.dtype = DType::f32;
            convert(i, now);
        }
        if (now.elempack != taken.elempack) {
            now.elempack = taken.elempack;
            convert(i, now);
        }
        if (now.shape.dtype != taken.shape.dtype) convert(i, taken);
    }
}

// The layer's part of a Concat's output; -1: none.
int Simulation::placed_memory(const Layer& layer, const BlobLayout& made) {
    if (!segment_.aliases || layer.tops.size() != 1) return -1;
    const ConcatElision::Alias& alias = segment_.aliases->aliases[layer.tops[0]];
    if (alias.root < 0 || !is_open_.count(alias.concat)) return -1;
    const ConcatElision::Root& root = segment_.aliases->roots[alias.root];
    if (made.elempack != root.elempack) return -1;
    int& memory = roots_[alias.root];
    if (memory < 0) {
        BlobLayout block = made;
        block.shape = root.shape, block.shape.dtype = made.shape.dtype;
        memory = add(block);
        hold(memory);  // until the Concat has run
    }
    if (graph_.layers[alias.concat] == &layer) memories_[memory].holders--;
    return memory;
}

// alone: the layer may work in place.
int Simulation::made_memory(const Layer& layer, const StepLayout& layout, size_t i, bool alone) {
    const BlobLayout& made = layout.makes[i];
    if (made.shares >= 0 && (size_t)made.shares < inputs_.size()) return inputs_[made.shares];
    if (alone && runs_in_place(layer)) {
        const size_t from = layout.makes.size() > 1 ? i : as<Convolution>(&layer) ? 1 : 0;
        for (size_t k = from; k < inputs_.size(); k++)
            if (same_layout(layout.inputs[k], made)) return inputs_[k];
    }
    return add(made);
}

// The memory of output i as it is kept.
int Simulation::output_memory(const Layer& layer, const StepLayout& layout, size_t i, bool alone) {
    if (layout.batch > 1 && !writes_into_batch(layer)) {
        hold(add(layout.makes[i]));  // of an item
        let_go((int)memories_.size() - 1);
    }
    if (alone && layout.overwritten >= 0) return inputs_[layout.overwritten];
    if (layout.batch > 1) return add(layout.outputs[i]);
    if (as<MemoryData>(&layer)) {
        memories_.push_back(Memory());
        memories_.back().holders = 1;
        return (int)memories_.size() - 1;
    }
    const BlobLayout &made = layout.makes[i], &kept = layout.outputs[i];
    const bool narrows = made.shape.dtype != kept.shape.dtype;
    const bool unpacks = made.elempack != kept.elempack;
    if (!narrows && !unpacks) {
        const int placed = placed_memory(layer, kept);
        return placed >= 0 ? placed : made_memory(layer, layout, i, alone);
    }
    std::vector<int> before(1, made_memory(layer, layout, i, alone));
    if (narrows && unpacks) {
        BlobLayout narrowed = kept;
        narrowed.elempack = made.elempack;
        before.push_back(add(narrowed));
    }
    for (int memory : before) hold(memory);
    const int placed = unpacks ? -1 : placed_memory(layer, kept);
    const int stored = placed >= 0 ? placed : add(kept);
    for (int memory : before) let_go(memory);
    return stored;
}

void Simulation::keep_output(int blob, int memory) {
    if (plan_.is_given(blob)) return;  // the user's, beside one that is wanted
    const auto before = memory_of_.find(blob);
    if (before != memory_of_.end()) let_go(before->second);
    memory_of_[blob] = memory;
    hold(memory);
}

void Simulation::make_outputs(const Layer& layer, const StepLayout& layout) {
    const bool alone = std::all_of(inputs_.begin(), inputs_.end(),
                                   [&](int m) { return memories_[m].holders == 1; });
    std::vector<int> made;
    for (size_t i = 0; i < layer.tops.size(); i++) {
        made.push_back(output_memory(layer, layout, i, alone));
        hold(made.back());
        all_bytes_ += block_bytes(layout.outputs[i]);
    }
    for (size_t i = 0; i < made.size(); i++) {
        keep_output(layer.tops[i], made[i]);
        let_go(made[i]);
    }
}

void Simulation::run_step(size_t at) {
    const Layer& layer = *graph_.layers[plan_.order()[at]];
    const StepLayout& layout = segment_.step(at).layout;
    step_ = (int)at;
    if (is_input_layer(layer)) return;
    take_inputs(layer, at);
    if (layout.known) make_outputs(layer, layout);
    for (int memory : inputs_) let_go(memory);
}

// Items one after the other: what they make within the stretch is another run's.
void Simulation::run_items() {
    const ItemStretch& items = segment_.items;
    step_ = (int)items.first;
    for (int id : items.makes) {
        const int producer = graph_.blobs[id].producer;
        const std::vector<int>& tops = graph_.layers[producer]->tops;
        const StepLayout& layout = segment_.step(plan_.position(producer)).layout;
        const BlobLayout& made = layout.outputs[index_of(tops, id)];
        all_bytes_ += block_bytes(made);
        keep_output(id, add(made));
    }
    for (size_t at = items.first; at < items.end; at++) {
        const Layer& layer = *graph_.layers[plan_.order()[at]];
        for (size_t i = 0; i < layer.bottoms.size(); i++) {
            const int id = layer.bottoms[i];
            if (!contains(items.reads, id) || !is_released(layer, at, i)) continue;
            let_go(memory_of(id));
            memory_of_.erase(id);
        }
    }
}

bool same_requests(const std::vector<MemoryRequest>& a, const std::vector<MemoryRequest>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](auto& x, auto& y) {
               return x.bytes == y.bytes && x.first == y.first && x.last == y.last;
           });
}

std::shared_ptr<const SegmentMemory> Simulation::result(const SegmentMemory* like) const {
    const std::shared_ptr<SegmentMemory> made = std::make_shared<SegmentMemory>();
    made->all_bytes = all_bytes_;
    std::vector<MemoryRequest>& requests = made->requests;
    size_t next = 0;
    for (size_t step = segment_.first; step < segment_.end; step++) {
        made->first.push_back(requests.size());
        for (; next < first_[step - segment_.first]; next++) {
            const Memory& m = memories_[next];
            if (m.first < 0 || m.bytes == 0) continue;
            if (m.holders > 0) {
                made->own_bytes += m.bytes;
                continue;
            }
            const int from = (int)segment_.first;
            requests.push_back({m.bytes, m.first - from, m.last - from});
            made->blocks.push_back({m.bytes, 0});
        }
    }
    made->first.push_back(requests.size());
    if (requests.empty() || requests.size() > kMostBlocks) return nullptr;
    made->plan = like && same_requests(requests, like->requests)
                     ? like->plan
                     : plan_memory(requests, kMallocAlign);
    for (size_t i = 0; i < requests.size(); i++) made->blocks[i].offset = made->plan.offsets[i];
    return made;
}

std::shared_ptr<const SegmentMemory> Simulation::run(const SegmentMemory* like) {
    find_places();
    for (size_t at = segment_.first; at < segment_.end; at++) {
        if (!kRunsItems || !segment_.items.contains(at))
            run_step(at);
        else if (at == segment_.items.first)
            run_items();
        first_.push_back(memories_.size());
    }
    return result(like);
}

}  // namespace

std::shared_ptr<const SegmentMemory> plan_segment_memory(const ExecutionPlan& plan,
                                                         const NetGraph& graph,
                                                         const PlanSegment& segment,
                                                         const SegmentMemory* like) {
    return Simulation(plan, graph, segment).run(like);
}

}  // namespace quoll
