#include "plan/concat_elision.h"

#include <algorithm>

#include "layer/tensor/concat.h"
#include "layer/tensor/slice.h"

namespace quoll {

namespace {

// The largest distance, in layers, between the first input and the last reader. Beyond it the
// Concat copies, which bounds the time that planning takes.
const int kFarthest = 1000;
const size_t kMostInputs = 256;

class Planner {
public:
    Planner(const std::vector<Layer*>& layers, const std::vector<std::vector<int>>& consumers,
            const std::vector<Shape>& shapes, const std::vector<int>& packs, const Option& opt)
        : layers_(layers),
          consumers_(consumers),
          shapes_(shapes),
          packs_(packs),
          float_size_(opt.use_fp16_storage || opt.use_bf16_storage ? 2 : 4) {}
    ConcatElision run();

private:
    typedef ConcatElision::Alias Alias;
    // When a blob, or the block of a root, is alive: while these layers run.
    struct Life {
        int from = 0, to = -1;
        double bytes = 0;
    };
    struct Input {
        int blob, first;
    };

    bool joins_channels(const Layer& layer) const;
    bool cuts_channels(const Layer& layer) const;
    int cut_from(int blob, int* first) const;
    void alias_parts(int index, const Input& in);
    void find_lives();
    void join(int index);
    std::vector<Input> inputs_to_alias(int index) const;
    bool fits(const Life& root, const std::vector<Input>& inputs, Life* with) const;
    void count(const Life& root, const Life& with, const std::vector<Input>& inputs,
               std::vector<double>* more) const;

    const std::vector<Layer*>& layers_;
    const std::vector<std::vector<int>>& consumers_;
    const std::vector<Shape>& shapes_;
    const std::vector<int>& packs_;  // elempack of each blob
    const int float_size_;           // bytes of a stored f32
    ConcatElision plan_;
    std::vector<int> producers_;  // the layer if it is one that can be given an alias, else -1
    std::vector<Life> lives_;     // of each blob
    std::vector<Life> blocks_;    // of each root
    std::vector<double> bytes_;   // alive while each layer runs
    double most_ = 0;
};

// A Concat of blobs of known sizes, of 2 axes or more, along the outermost.
bool Planner::joins_channels(const Layer& layer) const {
    const Concat* concat = as<Concat>(&layer);
    if (!concat || layer.bottoms.size() < 2 || layer.bottoms.size() > kMostInputs ||
        layer.tops.size() != 1)
        return false;
    const Shape& out = shapes_[layer.tops[0]];
    const int axis = concat->axis;
    if (out.dims < 2 || out.n != 1 || out.total() == 0 || (axis != 0 && axis != -out.dims))
        return false;
    return std::all_of(layer.bottoms.begin(), layer.bottoms.end(), [&](int id) {
        return shapes_[id].dims == out.dims && shapes_[id].dtype == out.dtype &&
               shapes_[id].total() > 0;
    });
}

// A Slice of such a blob, whose parts share its memory.
bool Planner::cuts_channels(const Layer& layer) const {
    const Slice* slice = as<Slice>(&layer);
    if (!slice || layer.bottoms.size() != 1) return false;
    const Shape& in = shapes_[layer.bottoms[0]];
    const int axis = slice->axis;
    return in.dims >= 2 && in.n == 1 && (axis == 0 || axis == -in.dims) &&
           shapes_[layer.tops[0]].dims == in.dims;
}

// The blob that this one is a part of, and where; -1: none.
int Planner::cut_from(int blob, int* first) const {
    const Layer& layer = *layers_[lives_[blob].from];
    *first = 0;
    if (!cuts_channels(layer)) return -1;
    for (int id : layer.tops) {
        if (id == blob) return layer.bottoms[0];
        *first += shapes_[id].size(0);
    }
    return -1;
}

void Planner::find_lives() {
    const int count = (int)layers_.size();
    lives_.resize(shapes_.size());
    producers_.assign(shapes_.size(), -1);
    std::vector<double> change((size_t)count + 1);
    for (int i = 0; i < count; i++) {
        const Layer& layer = *layers_[i];
        for (int id : layer.tops) {
            Life& life = lives_[id];
            life.from = i;
            life.to = consumers_[id].empty() ? i : std::max(i, consumers_[id].back());
            const size_t size =
                shapes_[id].dtype == DType::f32 ? float_size_ : dtype_size(shapes_[id].dtype);
            life.bytes = (double)shapes_[id].total() * (double)size;
        }
        if (cuts_channels(layer)) {
            Life& whole = lives_[layer.bottoms[0]];
            for (int id : layer.tops) {
                lives_[id].bytes = 0;
                whole.to = std::max(whole.to, lives_[id].to);
            }
        }
        if (layer.tops.size() != 1) continue;
        if (has_trait(layer, kCreatesOutput)) producers_[layer.tops[0]] = i;
        if (!runs_in_place(layer) || layer.bottoms.empty()) continue;
        Life& in = lives_[layer.bottoms[0]];
        if (in.to == i && in.bytes == lives_[layer.tops[0]].bytes) in.to = i - 1;
    }
    for (const Life& life : lives_) {
        if (life.to < life.from) continue;
        change[life.from] += life.bytes;
        change[life.to + 1] -= life.bytes;
    }
    double alive = 0;
    for (int i = 0; i < count; i++) {
        alive += change[i];
        bytes_.push_back(alive);
        most_ = std::max(most_, alive);
    }
}

// The inputs that can be aliased, the last one to be computed first.
std::vector<Planner::Input> Planner::inputs_to_alias(int index) const {
    const Layer& layer = *layers_[index];
    const int pack = packs_[layer.tops[0]];
    std::vector<Input> inputs;
    int first = 0;
    for (const int bottom : layer.bottoms) {
        int id = bottom, start;
        const int whole = cut_from(bottom, &start);
        start = first - start;
        if (whole >= 0 && consumers_[whole].size() == 1 && packs_[bottom] == pack && start >= 0 &&
            start + shapes_[whole].size(0) <= shapes_[layer.tops[0]].size(0))
            id = whole;
        else
            start = first;
        const int maker = producers_[id];
        const bool twice = std::any_of(inputs.begin(), inputs.end(),
                                       [&](const Input& other) { return other.blob == id; });
        if (maker >= 0 && maker < index && plan_.aliases[id].root < 0 && packs_[id] == pack &&
            !twice) {
            auto at = inputs.begin();
            while (at != inputs.end() && producers_[at->blob] > maker) ++at;
            inputs.insert(at, Input{id, start});
        }
        first += shapes_[bottom].size(0);
    }
    return inputs;
}

// For each layer in the life of `with`: the bytes that are alive in addition when these inputs are
// in the root.
void Planner::count(const Life& root, const Life& with, const std::vector<Input>& inputs,
                    std::vector<double>* more) const {
    more->assign((size_t)(with.to - with.from) + 2, 0.);
    const auto add = [&](int from, int to, double bytes) {
        if (from > to) return;
        (*more)[from - with.from] += bytes;
        (*more)[to + 1 - with.from] -= bytes;
    };
    add(with.from, root.from - 1, root.bytes);
    add(root.to + 1, with.to, root.bytes);
    for (const Input& in : inputs)
        add(lives_[in.blob].from, lives_[in.blob].to, -lives_[in.blob].bytes);
    for (size_t i = 1; i < more->size(); i++) (*more)[i] += (*more)[i - 1];
}

bool Planner::fits(const Life& root, const std::vector<Input>& inputs, Life* with) const {
    *with = root;
    for (const Input& in : inputs) {
        with->from = std::min(with->from, lives_[in.blob].from);
        with->to = std::max(with->to, lives_[in.blob].to);
    }
    if (with->to - with->from > kFarthest) return false;
    std::vector<double> more;
    count(root, *with, inputs, &more);
    for (int i = with->from; i <= with->to; i++)
        if (bytes_[i] + more[i - with->from] > most_) return false;
    return true;
}

void Planner::join(int index) {
    const Layer& layer = *layers_[index];
    const int top = layer.tops[0];
    Alias own = plan_.aliases[top];
    if (own.overlaps) return;  // nothing may lie there before it
    Life block = own.root < 0 ? lives_[top] : blocks_[own.root], with;
    std::vector<Input> inputs = inputs_to_alias(index);
    while (!inputs.empty() && !fits(block, inputs, &with)) inputs.pop_back();
    if (inputs.empty()) return;
    std::vector<double> more;
    count(block, with, inputs, &more);
    for (int i = with.from; i <= with.to; i++) bytes_[i] += more[i - with.from];
    if (own.root < 0) {
        own.root = (int)plan_.roots.size(), own.concat = index, own.count = shapes_[top].size(0);
        plan_.roots.push_back({shapes_[top], packs_[top]});
        blocks_.push_back(with);
    }
    own.has_parts = true;
    plan_.aliases[top] = own;
    blocks_[own.root] = with;
    for (const Input& in : inputs) {
        Alias& alias = plan_.aliases[in.blob];
        alias.root = own.root, alias.concat = index;
        alias.first = own.first + in.first, alias.count = shapes_[in.blob].size(0);
        alias_parts(index, in);
    }
}

// For an input of which others are parts: aliases those that are where the Concat wants them.
void Planner::alias_parts(int index, const Input& in) {
    const Layer& layer = *layers_[index];
    Alias& whole = plan_.aliases[in.blob];
    int covered = 0, first = 0;
    for (int id : layer.bottoms) {
        const int count = shapes_[id].size(0);
        int start;
        if (id == in.blob) return;
        if (cut_from(id, &start) == in.blob && in.first + start == first &&
            plan_.aliases[id].root < 0) {
            Alias& part = plan_.aliases[id];
            part.root = whole.root, part.concat = index, part.source = in.blob;
            part.first = whole.first + start, part.count = count;
            covered += count;
        }
        first += count;
    }
    whole.overlaps = covered < whole.count;
}

ConcatElision Planner::run() {
    plan_.aliases.resize(shapes_.size());
    find_lives();
    // Readers come first, so that a Concat knows whether it has an alias itself.
    for (int i = (int)layers_.size() - 1; i >= 0; i--)
        if (joins_channels(*layers_[i])) join(i);
    return std::move(plan_);
}

}  // namespace

ConcatElision plan_concat_elision(const std::vector<Layer*>& layers,
                                  const std::vector<std::vector<int>>& consumers,
                                  const std::vector<Shape>& shapes, const std::vector<int>& packs,
                                  const Option& opt) {
    return Planner(layers, consumers, shapes, packs, opt).run();
}

}  // namespace quoll
