#include "layer/vulkan/fusion.h"

#include <algorithm>

#include "layer/control/split.h"
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/eltwise.h"
#include "layer/elementwise/tensorbinary.h"
#include "layer/nn/pooling.h"
#include "layer/norm/softmax.h"
#include "layer/sequence/rotaryembed.h"
#include "layer/tensor/concat.h"
#include "layer/tensor/permute.h"
#include "layer/tensor/slice.h"
#include "layer/tensor/tile.h"
#include "layer/vision/shufflechannel.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

// A sum of two blobs.
bool is_sum(const Layer* layer) {
    if (const BinaryOp* s = as<BinaryOp>(layer)) return s->op_type == BinaryOp::ADD;
    if (const TensorBinary* s = as<TensorBinary>(layer)) return s->op_type == TensorBinary::ADD;
    const Eltwise* s = as<Eltwise>(layer);
    return s && s->op_type == Eltwise::SUM && s->coeffs.empty();
}

// Whether the softmax is along w, and there is one row.
bool is_of_row(const Softmax& softmax, const Shape& shape) {
    const int axis = softmax.axis < 0 ? softmax.axis + shape.dims : softmax.axis;
    return shape.total() == (size_t)shape.w && axis == shape.dims - 1;
}

bool is_product(const Layer* layer) {
    if (const BinaryOp* s = as<BinaryOp>(layer)) return s->op_type == BinaryOp::MUL;
    const TensorBinary* s = as<TensorBinary>(layer);
    return s && s->op_type == TensorBinary::MUL;
}

}  // namespace

bool pools_all(const Pooling& pooling, const Shape& in) {
    if (pooling.global_pooling) return true;
    const LogMute mute;
    Pooling::Axis axes[3];
    if (pooling.axes != 2 || pooling.geometry(in, &axes[0], &axes[1], &axes[2]) != kOk)
        return false;
    return std::all_of(axes, axes + 3, [](const Pooling::Axis& a) {
        const Pooling::Span span = a.at(0);
        return a.out == 1 && span.size == a.in && span.counted == a.in;
    });
}

Fusions::Fusions(const Region& region, const std::vector<const VulkanLayer*>& forms,
                 const std::vector<Layout>& layouts, const GpuDevice& device)
    : region_(region),
      forms_(forms),
      layouts_(layouts),
      makers_(region.values.size(), -1),
      readers_(region.values.size()),
      roles_(region.steps.size(), StepFusion::kNone),
      blocks_(region.steps.size(), -1),
      repeated_(3 * region.steps.size(), -1),
      normed_(region.steps.size(), -1),
      pooled_(region.steps.size(), -1),
      rotaries_(2 * region.steps.size(), -1) {
    for (size_t i = 0; i < region.steps.size(); i++) {
        for (int output : region.steps[i].outputs) makers_[output] = (int)i;
        for (int input : region.steps[i].inputs) readers_[input].push_back((int)i);
    }
    const bool excites = can_excite(device);
    for (size_t i = 0; i < region.steps.size(); i++) {
        SqueezeExcite block;
        std::vector<int> views;
        if (excites && find((int)i, &block, &views)) add(block, views);
        if (as<ShuffleChannel>(region.steps[i].layer)) add_shuffle((int)i);
    }
    for (size_t i = 0; i < region.steps.size(); i++) {
        add_norm((int)i);
        for (size_t input : {1, 2}) add_repeated((int)i, input);
        for (int input : {0, 1}) add_rotary((int)i, input);
        add_rows((int)i);
        add_pooled((int)i);
    }
    for (size_t i = 0; i < region.steps.size(); i++) add_epilogue((int)i);
    for (size_t i = 0; i < region.steps.size(); i++) add_pair((int)i);
}

const SqueezeExcite* Fusions::block_of(int step) const {
    const bool other = roles_[step] == StepFusion::kShuffle ||
                       roles_[step] == StepFusion::kEpilogue || roles_[step] == StepFusion::kRows ||
                       roles_[step] == StepFusion::kSums;
    return blocks_[step] < 0 || other ? nullptr : &found_[blocks_[step]];
}

// The shapes as the shape rules of operators see them.
Shapes Fusions::shapes(const std::vector<int>& values) const {
    Shapes shapes = region_.shapes(values);
    for (Shape& shape : shapes)
        if (!is_integer(shape.dtype)) shape.dtype = DType::f32;
    return shapes;
}

// All inputs and outputs must be channels-last and have the same number of items, and nothing else
// may read the values in between.
void Fusions::add_shuffle(int step) {
    const auto only = [&](int value) {
        return !region_.values[value].is_downloaded && readers_[value].size() == 1;
    };
    const RegionStep& shuffle = region_.steps[step];
    int input = shuffle.inputs[0];
    ShuffledChannels found = {shuffle.layer, {input}, shuffle.outputs};
    const int before = makers_[input];
    const Concat* concat = before < 0 ? nullptr : as<Concat>(region_.steps[before].layer);
    const int dims = region_.values[input].shape.dims;
    const bool joins = concat && (concat->axis == 0 || concat->axis == -dims) && only(input) &&
                       region_.steps[before].inputs.size() <= 2 &&
                       roles_[before] == StepFusion::kNone;
    if (joins) found.sources = region_.steps[before].inputs;
    const int made = shuffle.outputs[0], behind = only(made) ? readers_[made][0] : -1;
    const Slice* slice = behind < 0 ? nullptr : as<Slice>(region_.steps[behind].layer);
    const bool cuts = slice && (slice->axis == 0 || slice->axis == -dims);
    if (cuts) found.parts = region_.steps[behind].outputs;
    for (const std::vector<int>* values : {&found.sources, &found.parts})
        for (int value : *values)
            if (layouts_[value] != Layout::kChannelsLast ||
                region_.values[value].shape.n != region_.values[input].shape.n)
                return;
    if (joins) set_role(before, StepFusion::kSkipped, 0);
    if (cuts) set_role(step, StepFusion::kSkipped, 0);
    set_role(cuts ? behind : step, StepFusion::kShuffle, shuffled_.size());
    shuffled_.push_back(found);
}

// Takes a sum first, then an activation, then a multiplication. The product runs before the
// following step, so that what it is to add must exist by then.
bool Fusions::extend(int step, int behind, Epilogue* epilogue) const {
    const RegionStep& next = region_.steps[behind];
    const int made = next.outputs[0];
    const bool alike = region_.values[made].shape == region_.values[epilogue->made].shape &&
                       layouts_[made] == Layout::kPlanar;
    if (roles_[behind] != StepFusion::kNone || !alike) return false;
    const bool activated = epilogue->f.type != kActivationNone;
    const bool sum = is_sum(next.layer) && epilogue->added < 0 && !activated;
    const bool gates = fits(step, StepFusion::kFactor), product = gates && is_product(next.layer);
    if (next.inputs.size() == 2 && (sum || product)) {
        const int other = next.inputs[next.inputs[0] == epilogue->made ? 1 : 0];
        const bool same = shapes({other}) == shapes({made}) && layouts_[other] == Layout::kPlanar;
        if (!same || makers_[other] >= step) return false;
        (sum ? epilogue->added : epilogue->factor) = other;
    } else if (const Softmax* softmax = as<Softmax>(next.layer)) {
        if (!fits(step, StepFusion::kSoftmax) || !is_of_row(*softmax, region_.values[made].shape))
            return false;
        epilogue->softmax = true;
    } else {
        if (next.inputs.size() != 1 || activated) return false;
        epilogue->f = next.layer->as_activation();
        if (epilogue->f.type == kActivationNone) return false;
        // gemm_blocks.comp has no other activation, since each one makes the library larger.
        if (gates && epilogue->f.type != kActivationSwish) return false;
    }
    epilogue->made = made;
    return true;
}

void Fusions::add_epilogue(int step) {
    const RegionStep& product = region_.steps[step];
    if (product.outputs.size() != 1 || !fits(step, StepFusion::kEpilogue)) return;
    Epilogue epilogue;
    epilogue.made = product.outputs[0];
    if (layouts_[epilogue.made] != Layout::kPlanar) return;
    std::vector<int> taken;
    while (epilogue.factor < 0 && !epilogue.softmax && readers_[epilogue.made].size() == 1 &&
           !region_.values[epilogue.made].is_downloaded) {
        const int behind = readers_[epilogue.made][0];
        if (!extend(step, behind, &epilogue)) break;
        taken.push_back(behind);
    }
    if (taken.empty()) return;
    for (int behind : taken) set_role(behind, StepFusion::kSkipped, 0);
    set_role(step, StepFusion::kEpilogue, epilogues_.size());
    epilogues_.push_back(epilogue);
}

// Whether only products that normalise their input read a value, or what Splits make of it.
bool Fusions::only_products(int value, std::vector<int>* splits, std::vector<int>* products) const {
    if (region_.values[value].is_downloaded || layouts_[value] != Layout::kPlanar) return false;
    for (int reader : readers_[value]) {
        if (!as<Split>(region_.steps[reader].layer)) {
            if (!fits(reader, StepFusion::kNormed)) return false;
            products->push_back(reader);
            continue;
        }
        splits->push_back(reader);
        for (int output : region_.steps[reader].outputs)
            if (!only_products(output, splits, products)) return false;
    }
    return true;
}

void Fusions::add_norm(int step) {
    const RegionStep& norm = region_.steps[step];
    if (roles_[step] != StepFusion::kNone || norm.inputs.size() != 1) return;
    NormedInput found;
    found.x = norm.inputs[0];
    std::vector<int> splits, products;
    if (!forms_[step]->row_norm(shapes(norm.inputs)[0], &found.norm) ||
        layouts_[found.x] != Layout::kPlanar || !only_products(norm.outputs[0], &splits, &products))
        return;
    splits.push_back(step);
    for (int skipped : splits) set_role(skipped, StepFusion::kSkipped, 0);
    for (int product : products) normed_[product] = (int)norms_.size();
    norms_.push_back(found);
}

// Goes back through views to a Tile that repeats each channel before the next one, as for heads
// that share their keys and values.
void Fusions::add_repeated(int step, size_t input) {
    const std::vector<int>& inputs = region_.steps[step].inputs;
    if (inputs.size() <= input || !fits(step, StepFusion::kRepeated)) return;
    std::vector<int> skipped;
    int value = inputs[input];
    while (makers_[value] >= 0 && readers_[value].size() == 1 &&
           !region_.values[value].is_downloaded && layouts_[value] == Layout::kPlanar) {
        const int maker = makers_[value];
        const RegionStep& made = region_.steps[maker];
        if (roles_[maker] != StepFusion::kNone || made.inputs.size() != 1) return;
        const int from = made.inputs[0];
        const Shape &x = region_.values[from].shape, &y = region_.values[value].shape;
        skipped.push_back(maker);
        value = from;
        if (as<Tile>(made.layer)) {
            const bool channels = x.dims == 4 && x.d == 1 && x.n == 1 &&
                                  layouts_[from] == Layout::kPlanar && y.w == x.w && y.h == x.h &&
                                  y.c == x.c && y.w == region_.values[inputs[input]].shape.w &&
                                  y.h == region_.values[inputs[input]].shape.h;
            if (!channels) return;
            for (int s : skipped) set_role(s, StepFusion::kSkipped, 0);
            repeated_[3 * step + input] = from;
            return;
        }
        if (!forms_[maker]->gives_views() || x.total() != y.total() ||
            !has_trait(*made.layer, kSharesMemory))
            return;
    }
}

bool Fusions::is_for_one(int value) const {
    return readers_[value].size() == 1 && !region_.values[value].is_downloaded &&
           layouts_[value] == Layout::kPlanar;
}

// Goes back through views to a RotaryEmbed.
void Fusions::add_rotary(int step, int input) {
    if (region_.steps[step].inputs.size() < 2 || !fits(step, StepFusion::kRotated)) return;
    std::vector<int> skipped;
    int value = taken(step, (size_t)input);
    while (makers_[value] >= 0 && is_for_one(value)) {
        const int maker = makers_[value];
        const RegionStep& made = region_.steps[maker];
        if (roles_[maker] != StepFusion::kNone) return;
        skipped.push_back(maker);
        const Shape& x = region_.values[made.inputs[0]].shape;
        if (as<RotaryEmbed>(made.layer)) {
            for (int from : made.inputs)
                if (layouts_[from] != Layout::kPlanar) return;
            const RegionStep& s = region_.steps[step];
            const Shape& all = region_.values[input ? s.outputs[1] : s.inputs[0]].shape;
            // Views in between may have turned rows into heads. Only one item is rotated: a batch may
            // have the same keys.
            const int rows = region_.values[s.inputs[input]].shape.h;
            if (x.dims != 3 || all.n != 1 || x.w != all.w || x.h != rows || all.c % x.c) return;
            for (int behind : skipped) set_role(behind, StepFusion::kSkipped, 0);
            rotaries_[2 * step + input] = maker;
            repeated_[3 * step + input] = made.inputs[0];
            return;
        }
        if (made.inputs.size() != 1 || !forms_[maker]->gives_views() ||
            x.total() != region_.values[value].shape.total() ||
            !has_trait(*made.layer, kSharesMemory))
            return;
        value = made.inputs[0];
    }
}

// The transposed matrix of a blob's flattened pixels, as the patches of a vision transformer become
// rows.
void Fusions::add_rows(int step) {
    const RegionStep& permute = region_.steps[step];
    if (!as<Permute>(permute.layer) || roles_[step] != StepFusion::kNone) return;
    const int matrix = permute.inputs[0], flatten = makers_[matrix];
    if (flatten < 0 || roles_[flatten] != StepFusion::kNone || !is_for_one(matrix)) return;
    const RegionStep& before = region_.steps[flatten];
    if (before.inputs.size() != 1 || !has_trait(*before.layer, kSharesMemory)) return;
    const int pixels = before.inputs[0], maker = makers_[pixels];
    const Shape &x = region_.values[pixels].shape, &m = region_.values[matrix].shape;
    const Shape& rows = region_.values[permute.outputs[0]].shape;
    const bool flat = x.dims >= 3 && m.dims == 2 && m.h == x.c && x.n == m.n &&
                      (uint32_t)m.w == plane(x) && rows.w == m.h && rows.h == m.w;
    const bool last = layouts_[pixels] == Layout::kChannelsLast && !is_integer(x.dtype);
    // A view may be part of wider pixels, and so may a value with other readers.
    const bool own = maker >= 0 && roles_[maker] == StepFusion::kNone &&
                     !forms_[maker]->gives_views() && readers_[pixels].size() == 1 &&
                     !region_.values[pixels].is_downloaded;
    if (!flat || m.w == m.h || !last || !own || x.c % 4) return;
    set_role(flatten, StepFusion::kSkipped, 0);
    set_role(step, StepFusion::kRows, (size_t)pixels);
}

// A product, what is applied to it, and the product of that with another one of the same input.
void Fusions::add_pair(int step) {
    if (roles_[step] != StepFusion::kEpilogue) return;
    Epilogue& epilogue = epilogues_[blocks_[step]];
    const int factor = epilogue.factor;
    if (factor < 0 || epilogue.added >= 0 || epilogue.f.type != kActivationNone ||
        !is_for_one(factor))
        return;
    int other = -1;
    for (int i = 0; i < step; i++) {
        const bool made = roles_[i] == StepFusion::kEpilogue
                              ? epilogues_[blocks_[i]].made == factor
                              : roles_[i] == StepFusion::kNone && makers_[factor] == i;
        if (made) other = i;
    }
    if (other < 0) return;
    Epilogue before;
    if (roles_[other] == StepFusion::kEpilogue) before = epilogues_[blocks_[other]];
    const bool plain = before.added < 0 && before.factor < 0 && before.pair < 0;
    const auto pairs = [&](int s) {
        return forms_[s]->fuses(StepFusion::kPaired, shapes(region_.steps[s].inputs),
                                shapes(region_.steps[s].outputs));
    };
    if (!plain || !pairs(step) || !pairs(other) || !forms_[step]->pairs_with(*forms_[other]) ||
        normed_[step] != normed_[other] || source(taken(step, 0)) != source(taken(other, 0)))
        return;
    set_role(other, StepFusion::kSkipped, 0);
    epilogue.factor = -1, epilogue.pair = other, epilogue.f = before.f;
}

int Fusions::taken(int step, size_t input) const {
    const int repeated = input < 3 ? repeated_[3 * step + (int)input] : -1;
    if (repeated >= 0) return repeated;
    return normed_[step] < 0 ? region_.steps[step].inputs[input] : norms_[normed_[step]].x;
}

bool Fusions::fits(int step, StepFusion role) const {
    return step >= 0 && roles_[step] == StepFusion::kNone &&
           forms_[step]->fuses(role, shapes(region_.steps[step].inputs),
                               shapes(region_.steps[step].outputs));
}

// The value that a Split hands on.
int Fusions::source(int value) const {
    while (makers_[value] >= 0 && as<Split>(region_.steps[makers_[value]].layer))
        value = region_.steps[makers_[value]].inputs[0];
    return value;
}

// The only step that reads a value or views of it, which are added to `views`; *value is then what
// that step reads. -1: there is no such step.
int Fusions::only_reader(int* value, std::vector<int>* views) const {
    while (!region_.values[*value].is_downloaded && readers_[*value].size() == 1) {
        const int step = readers_[*value][0];
        const RegionStep& s = region_.steps[step];
        if (!forms_[step]->gives_views()) return step;
        // Permutes may have views, too, but in another order.
        if (!has_trait(*s.layer, kSharesMemory)) return -1;
        if (s.inputs.size() != 1 || s.outputs.size() != 1) return -1;
        if (region_.values[*value].shape.total() != region_.values[s.outputs[0]].shape.total())
            return -1;
        views->push_back(step);
        *value = s.outputs[0];
    }
    return -1;
}

// An average of all pixels and the inner product behind it.
void Fusions::add_pooled(int step) {
    const RegionStep& pool = region_.steps[step];
    const Pooling* pooling = as<Pooling>(pool.layer);
    if (!pooling || pooling->is_max() || roles_[step] != StepFusion::kNone ||
        !pools_all(*pooling, region_.values[pool.inputs[0]].shape))
        return;
    const int x = source(pool.inputs[0]), maker = makers_[x];
    std::vector<int> views;
    int value = pool.outputs[0];
    const int product = only_reader(&value, &views);
    if (!fits(product, StepFusion::kPooled) || !fits(maker, StepFusion::kSums)) return;
    for (int skipped : views) set_role(skipped, StepFusion::kSkipped, 0);
    set_role(step, StepFusion::kSkipped, 0);
    set_role(maker, StepFusion::kSums, 0);
    pooled_[product] = x;
}

void Fusions::set_role(int step, StepFusion role, size_t block) {
    if (step < 0) return;
    roles_[step] = role;
    blocks_[step] = (int)block;
}

int record_shuffled(Recorder& r, const Layer& layer, const Values& sources, uint32_t first,
                    const Value& part) {
    const ShuffleChannel& shuffle = *as<ShuffleChannel>(&layer);
    uint32_t all = 0;
    for (const Value& source : sources) all += (uint32_t)source.shape.c;
    const uint32_t group = (uint32_t)shuffle.group, groups = shuffle.reverse ? all / group : group;
    std::vector<uint32_t> table;
    for (uint32_t c = first; c < first + (uint32_t)part.shape.c; c++) {
        const uint32_t from = c % groups * (all / groups) + c / groups;
        const bool second = from >= (uint32_t)sources[0].shape.c;
        const Value& source = sources[second ? 1 : 0];
        const uint32_t channel = second ? from - (uint32_t)sources[0].shape.c : from;
        table.push_back(2 * (source.first + channel) + (second ? 1 : 0));
    }
    Binding places;
    QUOLL_RETURN_IF_ERROR(r.constants(table, &places));
    const Rows rows = rows_of(part);
    const uint32_t count = rows.count * rows.vectors();
    r.dispatch_linear(Shader::gather, {},
                      {r.read(sources[0]), r.read(sources.back()), r.write(part), places},
                      {count, rows.vectors(), rows.length, sources[0].pitch, sources.back().pitch,
                       rows.pitch / 4, part.first / 4},
                      count);
    return kOk;
}

}  // namespace quoll
