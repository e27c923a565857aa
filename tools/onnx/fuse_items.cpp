// Attention of sequences, item by item.
#include <algorithm>
#include <map>
#include <set>

#include "layer/activation/clip.h"
#include "layer/activation/gelu.h"
#include "layer/activation/hardswish.h"
#include "layer/activation/relu.h"
#include "layer/activation/sigmoid.h"
#include "layer/activation/swish.h"
#include "layer/activation/tanh.h"
#include "layer/control/memorydata.h"
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/dropout.h"
#include "layer/elementwise/erf.h"
#include "layer/elementwise/unaryop.h"
#include "layer/nn/innerproduct.h"
#include "layer/norm/layernorm.h"
#include "layer/norm/rmsnorm.h"
#include "layer/tensor/permute.h"
#include "layer/tensor/tensorshape.h"
#include "onnx/fuse_layers.h"

namespace quoll {
namespace onnx_tool {

namespace {

constexpr int kNone = -233;
// Orders of the three axes of a Mat: [a][b][c] to [b][a][c], [c][a][b] and [b][c][a].
enum { kExchanged = 2, kLastFirst = 4, kFirstLast = 3 };
constexpr int kTransposed = 1;  // of two axes

int param(const ModelLayer& layer, int id, int def = kNone) { return layer.params.get(id, def); }

// A function of each value by itself.
bool is_pointwise(const ModelLayer& layer) {
    if (layer.inputs.size() != 1) return false;
    return (layer.is<BinaryOp>() && param(layer, 1, 0) == 1) || layer.is<ReLU>() ||
           layer.is<GELU>() || layer.is<Sigmoid>() || layer.is<Swish>() || layer.is<TanH>() ||
           layer.is<Clip>() || layer.is<HardSwish>() || layer.is<UnaryOp>() ||
           layer.is<Dropout>() || layer.is<Erf>();
}

// What layers there are, and which of them could treat rows item by item.
class Rows {
public:
    Rows(Converter* converter, const KnownDims& known,
         const std::vector<SequenceAttention>& attentions)
        : c_(*converter), known_(known) {
        for (size_t i = 0; i < c_.model.layers.size(); i++) {
            for (const std::string& blob : layer(i).outputs) makers_[blob] = i;
            for (const std::string& blob : layer(i).inputs) readers_[blob].push_back(i);
        }
        for (const SequenceAttention& a : attentions) {
            const size_t index = makers_[a.output];
            attentions_[index] = &a;
            find_all(a.output, a.made);
            for (size_t i = 0; i < a.inputs.size(); i++)
                find_all(layer(index).inputs[i], a.inputs[i]);
        }
    }

    const ModelLayer& layer(size_t index) const { return c_.model.layers[index]; }
    const ModelLayer* maker(const std::string& blob) const {
        const auto found = makers_.find(blob);
        return found == makers_.end() ? nullptr : &layer(found->second);
    }
    const SequenceAttention* attention(size_t index) const {
        const auto found = attentions_.find(index);
        return found == attentions_.end() ? nullptr : found->second;
    }
    // False if a blob holds sequences of several lengths, depending on who looks at it.
    bool agree() const { return agree_; }
    // Null if the blob holds no sequences that lead to attention.
    const Sequences* find(const std::string& blob) const {
        const auto found = rows_.find(blob);
        return found == rows_.end() ? nullptr : &found->second;
    }
    // The sequences in another form, of which the blob is made.
    const std::string* moved_from(const ModelLayer& layer) const {
        const bool moves = is_plain_reshape(layer) || layer.is<BatchAxis>();
        return moves && find(layer.inputs[0]) && find(layer.outputs[0]) ? &layer.inputs[0]
                                                                        : nullptr;
    }
    // A constant that goes with each item: one value, one row, or a row for each place.
    const ModelLayer* constant(const std::string& blob, const Sequences& s) const {
        const ModelLayer* data = maker(blob);
        const bool batch = data && data->is<BatchAxis>() && param(*data, 0, 0) == 0;
        if (batch) data = maker(data->inputs[0]);
        if (!data || !data->is<MemoryData>() || param(*data, 11, 0) != 0) return nullptr;
        const int w = param(*data, 0, 0), h = param(*data, 1, 0), c = param(*data, 2, 0);
        const bool three = batch || s.form == Sequences::kAxes;
        const bool axes = three ? c == 1 || (c > 1 && s.length.is(c)) : c == 0;  // as many
        return axes && h == 1 && (w == 1 || w == s.width) ? data : nullptr;
    }

    // Whether the layer makes sequences of items by exchanging axes, or items of sequences.
    bool enters(const ModelLayer& layer) const {
        const int order = layer.is<Permute>() ? param(layer, 0, 0) : 0;
        return (order == kExchanged || order == kLastFirst) && has_axes(layer.outputs[0]);
    }
    bool exits(const ModelLayer& layer) const {
        const int order = layer.is<Permute>() ? param(layer, 0, 0) : 0;
        return (order == kExchanged || order == kFirstLast) && has_axes(layer.inputs[0]);
    }

    // Layers that are to be computed item by item, attention apart: those that are connected, all
    // or none of them.
    std::set<size_t> choose() const {
        std::set<size_t> chosen;
        for (int group = 0; group < groups_; group++) {
            std::set<size_t> more = chosen;
            for (const auto& f : found_)
                if (f.second == group) more.insert(f.first);
            if (more.size() > chosen.size() && cost(more) <= cost(chosen)) chosen = more;
        }
        return chosen;
    }

private:
    // How often sequences are turned into items and back.
    int cost(const std::set<size_t>& chosen) const {
        std::set<std::string> in, out;
        for (size_t i = 0; i < c_.model.layers.size(); i++) {
            if (!chosen.count(i) && !attention(i)) continue;
            for (const std::string& blob : layer(i).inputs)
                if (find(blob) && !comes_by_items(blob, chosen, &in)) in.insert(blob);
            if (leaves(layer(i).outputs[0], chosen)) out.insert(layer(i).outputs[0]);
        }
        return (int)(in.size() + out.size());
    }
    // Whether a blob needs no turning. If it has been moved from one that does, that one is put
    // into *turned.
    bool comes_by_items(const std::string& blob, const std::set<size_t>& chosen,
                        std::set<std::string>* turned) const {
        const auto found = makers_.find(blob);
        if (found == makers_.end()) return false;
        const ModelLayer& made = layer(found->second);
        if (chosen.count(found->second) || attention(found->second) || made.is<MemoryData>() ||
            enters(made))
            return true;
        const std::string* from = moved_from(made);
        if (!from) return false;
        if (!comes_by_items(*from, chosen, turned)) turned->insert(*from);
        return true;
    }
    // Whether a layer needs the sequences.
    bool leaves(const std::string& blob, const std::set<size_t>& chosen) const {
        const auto readers = readers_.find(blob);
        if (readers == readers_.end()) return true;  // an output
        return std::any_of(readers->second.begin(), readers->second.end(), [&](size_t reader) {
            if (chosen.count(reader) || attention(reader) || exits(layer(reader))) return false;
            return !moved_from(layer(reader)) || leaves(layer(reader).outputs[0], chosen);
        });
    }

    bool has_axes(const std::string& blob) const {
        const Sequences* s = find(blob);
        return s && s->form == Sequences::kAxes;
    }

    Sequences known_as(const std::string& blob, const Sequences& like) const {
        const auto known = known_.find(blob);
        if (known == known_.end()) return Sequences();
        return sequences_of(known->second, like.length, like.items, &c_.symbols);
    }

    // All sequences that layers which treat rows alike, or reshapes, lead to from this blob.
    void find_all(const std::string& blob, const Sequences& s) {
        std::vector<std::string> open;
        add(blob, s, &open);
        while (!open.empty()) {
            const std::string next = open.back();
            open.pop_back();
            const auto made = makers_.find(next);
            if (made != makers_.end()) look_at(made->second, rows_[next], &open);
            for (size_t reader : readers_[next]) look_at(reader, rows_[next], &open);
        }
        groups_++;
    }
    void add(const std::string& blob, const Sequences& s, std::vector<std::string>* open) {
        const auto added = rows_.emplace(blob, s);
        if (added.second) open->push_back(blob);
        const Sequences& had = added.first->second;
        agree_ =
            agree_ && had.form == s.form && same(had.length, s.length) && same(had.items, s.items);
    }

    // s: what is known of one of the layer's blobs.
    void look_at(size_t index, const Sequences& s, std::vector<std::string>* open) {
        const ModelLayer& l = layer(index);
        if (found_.count(index) || attention(index) || l.inputs.empty() || l.outputs.size() != 1)
            return;
        const Sequences in = known_as(l.inputs[0], s), out = known_as(l.outputs[0], s);
        if (out.form == Sequences::kNone) return;
        if (is_plain_reshape(l) || l.is<BatchAxis>()) {
            if (in.form == Sequences::kNone || in.width != out.width) return;
            add(l.inputs[0], in, open);
            add(l.outputs[0], out, open);
            return;
        }
        std::vector<std::pair<std::string, Sequences>> operands;
        for (const std::string& blob : l.inputs) {
            const Sequences operand = known_as(blob, s);
            if (operand.form == out.form && !constant(blob, out))
                operands.push_back({blob, operand});
            else if (!constant(blob, out))
                return;
        }
        if (operands.empty() || !treats_rows_alike(l, operands[0].second.width, out.width)) return;
        for (const auto& operand : operands) {
            if (l.is<BinaryOp>() && operand.second.width != out.width) return;
            add(operand.first, operand.second, open);
        }
        add(l.outputs[0], out, open);
        found_[index] = groups_;
    }

    static bool treats_rows_alike(const ModelLayer& l, int width, int made) {
        const int kOutputs = 0, kWeights = 2, kAffineSize = 0;
        if (l.is<InnerProduct>())
            return l.inputs.size() == 1 && param(l, kOutputs, 0) == made &&
                   (int64_t)made * width == param(l, kWeights, 0);
        if (width != made) return false;
        if (l.is<LayerNorm>() || l.is<RMSNorm>())
            return l.inputs.size() == 1 && param(l, kAffineSize, 0) == width;
        return is_pointwise(l) || (l.is<BinaryOp>() && l.inputs.size() == 2);
    }

    Converter& c_;
    const KnownDims& known_;
    std::unordered_map<std::string, size_t> makers_;
    std::unordered_map<std::string, std::vector<size_t>> readers_;
    std::map<size_t, const SequenceAttention*> attentions_;
    std::unordered_map<std::string, Sequences> rows_;
    std::map<size_t, int> found_;  // layers that treat rows alike; those connected have one number
    int groups_ = 0;
    bool agree_ = true;
};

class ByItems {
public:
    ByItems(Converter* converter, const Rows& rows, const std::vector<std::string>& outputs)
        : c_(*converter), rows_(rows), outputs_(outputs.begin(), outputs.end()) {}

    void run() {
        const std::set<size_t> chosen = rows_.choose();
        for (size_t i = 0; i < c_.model.layers.size(); i++) {
            ModelLayer layer = c_.model.layers[i];
            for (std::string& blob : layer.inputs) blob = present(blob);
            const SequenceAttention* attention = rows_.attention(i);
            if (attention) turn_mask(*attention, &layer);
            if (attention)
                compute(layer, attention->inputs.size());
            else if (chosen.count(i))
                compute(layer, layer.inputs.size());
            else if (!passes(layer))
                keep(layer);
        }
        for (const std::string& blob : outputs_) write(blob);
        c_.model.layers.swap(all_);
    }

private:
    static int size(const Dim& d) { return d.known() ? (int)d.value : -1; }

    ModelLayer& add(const char* type, const std::string& input, const std::string& output) {
        ModelLayer layer;
        layer.type = type;
        layer.name = output;
        layer.inputs = {input}, layer.outputs = {output};
        all_.push_back(layer);
        return all_.back();
    }
    std::string next(const std::string& wish) { return c_.unique(wish + "_items"); }

    std::string reshape(const std::string& blob, const std::string& output, int w, int h, int c = 0,
                        int d = 0) {
        ModelLayer& layer = add("Reshape", blob, output);
        layer.set("w", w), layer.set("h", h);
        if (d) layer.set("d", d);
        if (c) layer.set("c", c);
        return output;
    }
    std::string permute(const std::string& blob, const std::string& output, int order) {
        add("Permute", blob, output).set("order_type", order);
        return output;
    }
    std::string to_batch(const std::string& blob, const std::string& output) {
        return add("BatchAxis", blob, output).outputs[0];
    }
    std::string from_batch(const std::string& blob, const std::string& output) {
        add("BatchAxis", blob, output).set("inverse", 1);
        return output;
    }

    // The blob that has taken the place of one that nothing makes any more.
    const std::string& present(const std::string& blob) const {
        const auto other = instead_.find(blob);
        return other == instead_.end() ? blob : other->second;
    }

    // The items [length][width] of sequences, as a batch, or as one Mat if there is but one.
    std::string items_of(const std::string& blob, const Sequences& s) {
        const auto found = items_.find(blob);
        if (found != items_.end()) return found->second;
        const ModelLayer* maker = rows_.maker(blob);
        const std::string* from = maker ? rows_.moved_from(*maker) : nullptr;
        std::string items;
        if (from)
            items = items_of(*from, *rows_.find(*from));
        else if (maker && rows_.enters(*maker))
            items = before(*maker, s);
        else
            items = turned(blob, s);
        items_[blob] = items;
        return items;
    }
    // What a Permute made sequences of.
    std::string before(const ModelLayer& permute_layer, const Sequences& s) {
        const std::string axes = present(permute_layer.inputs[0]);
        const auto items_behind = axes_.find(axes);
        const ModelLayer* maker = rows_.maker(axes);
        write(axes);
        const bool columns = param(permute_layer, 0, 0) == kLastFirst;
        std::string items;
        if (items_behind != axes_.end())
            items = items_behind->second;
        else if (maker && maker->is<BatchAxis>() && param(*maker, 0, 0) == 1)
            items = present(maker->inputs[0]);
        else if (s.items.is(1))
            items = reshape(axes, next(axes), columns ? -1 : s.width, columns ? s.width : -1);
        else
            items = to_batch(axes, next(axes));
        return columns ? permute(items, next(axes), kTransposed) : items;
    }
    std::string turned(const std::string& blob, const Sequences& s) {
        std::string now = present(blob);
        if (s.form == Sequences::kBatch) now = from_batch(now, next(blob));
        if (s.items.is(1))
            return s.form == Sequences::kRows ? now : reshape(now, next(blob), s.width, -1);
        if (s.form == Sequences::kRows)
            now = reshape(now, next(blob), s.width, size(s.items), size(s.length));
        return to_batch(permute(now, next(blob), kExchanged), next(blob));
    }

    // Sequences that a layer needs, of items that have been computed.
    void write(const std::string& blob) {
        if (!made_.count(blob) || !written_.insert(blob).second) return;
        const Sequences& s = *rows_.find(blob);
        const std::string& items = items_[blob];
        const bool batch = s.form == Sequences::kBatch;
        const std::string axes = batch ? next(blob) : blob;
        if (s.items.is(1)) {
            if (s.form == Sequences::kRows)
                reshape(items, blob, s.width, -1);
            else
                reshape(items, axes, s.width, 1, -1);
        } else {
            const bool rows = s.form == Sequences::kRows;
            permute(from_batch(items, next(blob)), rows ? next(blob) : axes, kExchanged);
            if (rows) reshape(std::string(all_.back().outputs[0]), blob, s.width, -1);
        }
        if (batch) to_batch(axes, blob);
    }

    // A layer that moves what has been computed as items. False if it is none.
    bool passes(const ModelLayer& layer) {
        if (layer.inputs.size() != 1 || layer.outputs.size() != 1) return false;
        const std::string &from = layer.inputs[0], &to = layer.outputs[0];
        if (made_.count(from) && rows_.moved_from(layer)) {
            made_.insert(to);
            items_[to] = items_[from];
            return true;
        }
        const auto axes = axes_.find(from);
        if (axes != axes_.end() && layer.is<BatchAxis>() && param(layer, 0, 0) == 0 &&
            !outputs_.count(to)) {
            instead_[to] = axes->second;
            return true;
        }
        if (!made_.count(from) || !rows_.exits(layer)) return false;
        const Sequences& s = *rows_.find(from);
        std::string items = items_[from];
        const bool columns = param(layer, 0, 0) == kFirstLast;
        if (columns) items = permute(items, next(from), kTransposed);
        if (s.items.is(1))
            reshape(items, to, columns ? -1 : s.width, columns ? s.width : -1, 1);
        else
            from_batch(items, to);
        axes_[to] = items;
        return true;
    }

    void keep(const ModelLayer& layer) {
        for (const std::string& blob : layer.inputs) write(blob);
        all_.push_back(layer);
    }

    // The layer for items in place of sequences, which so many of its inputs are.
    void compute(ModelLayer layer, size_t inputs) {
        const Sequences& made = *rows_.find(layer.outputs[0]);
        for (size_t i = 0; i < inputs; i++) {
            std::string& blob = layer.inputs[i];
            const ModelLayer* data = rows_.constant(blob, made);
            const Sequences* s = rows_.find(blob);
            if (s)
                blob = items_of(blob, *s);
            else if (data)
                blob = constant_of(*data, blob);
        }
        const std::string blob = layer.outputs[0];
        if (made.items.is(1) && made.form == Sequences::kRows)
            written_.insert(blob);  // rows of one item are that item
        else
            layer.outputs[0] = next(blob);
        made_.insert(blob);
        items_[blob] = layer.outputs[0];
        all_.push_back(layer);
    }
    std::string constant_of(const ModelLayer& data, const std::string& blob) {
        const auto found = items_.find(blob);
        if (found != items_.end()) return found->second;
        ModelLayer rows = data;
        const int w = param(data, 0, 0), h = std::max(1, param(data, 2, 0));
        rows.set("h", h), rows.set("c", 0);
        rows.set_weight("data", data.find_weight("data")->widened().reshape(w, h));
        rows.name = rows.outputs[0] = next(blob);
        all_.push_back(rows);
        items_[blob] = rows.outputs[0];
        return rows.outputs[0];
    }

    // The mask of all heads of all items as one for each item.
    void turn_mask(const SequenceAttention& a, ModelLayer* layer) {
        if (layer->inputs.size() == a.inputs.size()) return;
        std::string& mask = layer->inputs.back();
        write(mask);
        if (a.mask_heads == 0 || a.made.items.is(1)) return;
        std::string& items = items_[mask];
        if (items.empty()) {
            const std::string axes =
                reshape(mask, next(mask), a.mask_columns, a.mask_rows, -1, a.mask_heads);
            items = to_batch(axes, next(mask));
        }
        mask = items;
    }

    Converter& c_;
    const Rows& rows_;
    const std::set<std::string> outputs_;
    std::deque<ModelLayer> all_;
    std::set<std::string> made_, written_;
    std::unordered_map<std::string, std::string> items_, axes_, instead_;
};

}  // namespace

bool by_items(Converter* converter, const KnownDims& known, const std::vector<std::string>& outputs,
              const std::vector<SequenceAttention>& attentions) {
    const Rows rows(converter, known, attentions);
    if (!rows.agree()) return false;
    ByItems(converter, rows, outputs).run();
    return true;
}

}  // namespace onnx_tool
}  // namespace quoll
