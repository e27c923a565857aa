// Attention between heads of projected rows as one layer.
#include "onnx/fuse_layers.h"

#include <limits.h>
#include <math.h>

#include <algorithm>
#include <unordered_map>

#include "layer/sequence/sdpa.h"

namespace quoll {
namespace onnx_tool {

namespace {

// Rows that a product makes of others.
struct Projection {
    const ModelLayer* product = nullptr;
    int inputs = 0, outputs = 0;
    float factor = 1;  // of what it makes
};

class Heads {
public:
    Heads(Model* model, const KnownDims& known, Symbols* symbols,
          std::vector<SequenceAttention>* sequences)
        : model_(model), known_(known), symbols_(*symbols), sequences_(sequences) {
        for (ModelLayer& layer : model->layers) {
            for (const std::string& blob : layer.outputs) makers_[blob] = &layer;
            for (const std::string& blob : layer.inputs) readers_[blob].push_back(&layer);
        }
    }

    int run() {
        int count = 0;
        for (ModelLayer& layer : model_->layers) count += layer.is<SDPA>() && replace(layer);
        return count;
    }

private:
    // The layer of that type that makes a blob.
    const ModelLayer* any_maker(const std::string& blob, const char* type) const {
        const auto found = makers_.find(blob);
        return found != makers_.end() && found->second->type == type ? found->second : nullptr;
    }
    // The same for one reader.
    const ModelLayer* maker(const std::string& blob, const char* type) const {
        const auto readers = readers_.find(blob);
        const bool once = readers != readers_.end() && readers->second.size() == 1;
        return once ? any_maker(blob, type) : nullptr;
    }

    ModelLayer* reader(const std::string& blob, const char* type) const {
        const auto found = readers_.find(blob);
        if (found == readers_.end() || found->second.size() != 1) return nullptr;
        return found->second[0]->type == type ? found->second[0] : nullptr;
    }

    static bool is_projection(const ModelLayer* layer, Projection* p) {
        const StoredWeight* weights = layer ? layer->find_weight("weight_data") : nullptr;
        if (!weights || weights->data.elemsize != 4u || layer->params.get(8, 0) != 0 ||
            layer->params.get(9, 0) != 0)
            return false;
        p->product = layer;
        p->outputs = layer->params.get(0, 0);
        const size_t count = weights->data.logical_shape().total();
        if (p->outputs < 1 || count % (size_t)p->outputs != 0) return false;
        p->inputs = (int)(count / (size_t)p->outputs);
        return true;
    }

    // Of [items][heads][rows][size].
    static constexpr int kRowsFirst = 12;
    // Exchanges rows and heads, of three axes.
    static bool exchanges(const ModelLayer* permute) {
        return permute && permute->params.get(0, 0) == 2;
    }

    struct Rows {
        int heads = 0, size = 0, rows = 0;  // heads: of all items; -1 where their number is open
        bool batch = false;                 // what was projected is a batch of `rows` Mats
        int of_item = 0;                    // heads of an item if items are a batch for SDPA
    };
    // [rows][heads][size]. One row may be a vector elsewhere.
    static bool splits(const ModelLayer* reshape, Rows* r) {
        return has_three_axes(reshape, &r->size, &r->heads, &r->rows) && r->rows != 1;
    }
    // The same of a batch of rows.
    bool splits_batch(const ModelLayer* axis, const ModelLayer* reshape, Rows* r) const {
        const int kNone = -233;
        if (axis->params.get(0, 0) != 1 || !reshape || reshape->inputs.size() != 1) return false;
        for (int id : {2, 11})
            if (reshape->params.get(id, kNone) != kNone) return false;
        r->size = reshape->params.get(0, kNone), r->heads = reshape->params.get(1, kNone);
        const auto known = known_.find(reshape->outputs[0]);
        if (known == known_.end() || !known->second.batch) return false;
        const Dim& rows = known->second.dims[0];
        r->rows = rows.known() ? (int)rows.value : -1;
        r->batch = true;
        return r->size > 0 && r->heads != 0 && r->heads != kNone && r->rows != 1;
    }
    static bool has_three_axes(const ModelLayer* reshape, int* w, int* h, int* c) {
        const int kNone = -233;
        if (!reshape || reshape->inputs.size() != 1) return false;
        *w = reshape->params.get(0, kNone), *h = reshape->params.get(1, kNone);
        *c = reshape->params.get(2, kNone);
        return *w > 0 && *h != 0 && *h != kNone && *c != 0 && *c != kNone &&
               reshape->params.get(11, kNone) == kNone;
    }
    // Heads of rows in the shape that they have, as what was a batch of one item.
    static bool keeps(const ModelLayer* reshape, const Rows& r) {
        int size = 0, rows = 0, heads = 0;
        return has_three_axes(reshape, &size, &rows, &heads) && size == r.size && rows == r.rows &&
               heads == r.heads;
    }

    // Heads of rows as a batch of items [heads][rows][size].
    static bool parts(const ModelLayer* axis, const ModelLayer* reshape, Rows* r) {
        if (axis->params.get(0, 0) != 0 || !reshape || reshape->inputs.size() != 1) return false;
        r->of_item = reshape->params.get(11, -233);
        return reshape->params.get(0, -233) == r->size && reshape->params.get(1, -233) == r->rows &&
               reshape->params.get(2, -233) != -233 && r->of_item > 0;
    }

    // Heads of rows as those of the only item: [1][heads][rows][size].
    static bool is_item(const ModelLayer* reshape, const Rows& r) {
        if (!reshape || reshape->inputs.size() != 1) return false;
        const std::pair<int, int> sizes[] = {{0, r.size}, {1, r.rows}, {11, r.heads}, {2, 1}};
        return std::all_of(sizes, sizes + 4, [&](const std::pair<int, int>& axis) {
            return reshape->params.get(axis.first, -233) == axis.second;
        });
    }

    // [rows][heads * size].
    static bool joins(const ModelLayer* reshape, int width) {
        if (!reshape || reshape->inputs.size() != 1) return false;
        const int rows = reshape->params.get(1, -233);
        return reshape->params.get(0, -233) == width && rows != 0 && rows != -233 &&
               reshape->params.get(2, -233) == -233 && reshape->params.get(11, -233) == -233;
    }

    // The projection behind heads of rows; *found: theirs.
    bool find_projection(const std::string& blob, Rows* found, Projection* p) const {
        const ModelLayer* items = maker(blob, "BatchAxis");
        const ModelLayer* same = maker(items ? items->inputs[0] : blob, "Reshape");
        const ModelLayer* permute = maker(same ? same->inputs[0] : blob, "Permute");
        const ModelLayer* axis = permute ? maker(permute->inputs[0], "BatchAxis") : nullptr;
        const std::string& split = axis ? axis->inputs[0] : permute ? permute->inputs[0] : blob;
        const ModelLayer* reshape = maker(split, "Reshape");
        Rows r;
        if (!exchanges(permute) ||
            !(axis ? splits_batch(axis, reshape, &r) : splits(reshape, &r)) ||
            (items ? !parts(items, same, &r) : same && !keeps(same, r)))
            return false;
        std::string rows = reshape->inputs[0];
        const int kMul = 2;
        const ModelLayer* scaled = maker(rows, "BinaryOp");
        if (scaled && scaled->params.get(0, 0) == kMul && scaled->params.get(1, 0) != 0) {
            p->factor = scaled->params.get(2, 0.f);
            rows = scaled->inputs[0];
        }
        if (!is_projection(maker(rows, "InnerProduct"), p) || p->outputs % r.size != 0 ||
            (found->heads != 0 && found->heads != r.heads))
            return false;
        *found = r;
        return true;
    }

    // The layer behind heads that makes rows of them again.
    const ModelLayer* rows_again(const std::string& heads, const Rows& r) const {
        if (r.of_item) {
            const ModelLayer* axis = reader(heads, "BatchAxis");
            const ModelLayer* permute = axis ? reader(axis->outputs[0], "Permute") : nullptr;
            const bool fits = permute && axis->params.get(0, 0) == 1;
            return fits && permute->params.get(0, 0) == kRowsFirst ? permute : nullptr;
        }
        const ModelLayer* const same = reader(heads, "Reshape");
        const ModelLayer* const permute = reader(same ? same->outputs[0] : heads, "Permute");
        const bool of_three = exchanges(permute) && (!same || keeps(same, r));
        const bool of_four = permute && permute->params.get(0, 0) == kRowsFirst && is_item(same, r);
        return of_three || of_four ? permute : nullptr;
    }

    // How what was projected lies in its blob, given the rows and the heads of all items.
    Sequences sequences(const Projection& p, const Rows& r, int heads) const {
        const auto known = known_.find(p.product->inputs[0]);
        if (known == known_.end()) return Sequences();
        const BlobDims& blob = known->second;
        if (blob.batch != r.batch || blob.dims.size() != (r.batch ? 3u : 2u)) return Sequences();
        if (r.heads > 0 && r.heads % heads != 0) return Sequences();
        Dim length = blob.dims[0], items = blob.dims[1];
        if (!r.batch && r.heads != -1) items = Dim(r.heads / heads);
        if (!r.batch) length = r.rows != -1 ? Dim(r.rows) : symbols_.divide(blob.dims[0], items);
        if (!r.batch && r.heads == -1) items = symbols_.divide(blob.dims[0], length);
        return sequences_of(blob, length, items, &symbols_);
    }

    // Whether a mask is of all heads and items alike, or of each head of each item.
    bool find_mask(const std::string& blob, int heads, bool by_items, SequenceAttention* a) const {
        const ModelLayer* mask = any_maker(blob, "MemoryData");
        if (mask && mask->params.get(1, 0) > 0 && mask->params.get(2, 0) <= 1 &&
            mask->params.get(11, 0) == 0)
            return true;
        const auto known = known_.find(blob);
        if (known == known_.end()) return false;
        const std::vector<Dim>& dims = known->second.dims;
        if (known->second.batch) return by_items && same(dims[0], a->made.items);
        if (dims.size() != 3 || by_items) return dims.size() == 2 || dims.size() == 3;
        if (!same(dims[0], symbols_.multiply(a->made.items, Dim(heads))) || !dims[1].known() ||
            !dims[2].known())
            return false;
        a->mask_heads = heads;
        a->mask_rows = (int)dims[1].value, a->mask_columns = (int)dims[2].value;
        return true;
    }

    static void set_projection(const Projection& p, const std::string& name, ModelLayer* to) {
        to->set_weight((name + "_weight_data").c_str(),
                       p.product->find_weight("weight_data")->widened());
        const StoredWeight* bias = p.product->find_weight("bias_data");
        Mat values = bias ? bias->data : Mat(p.outputs);
        if (!bias) values.fill(0.f);
        to->set_weight((name + "_bias_data").c_str(), values);
    }

    // Attention between projected rows: what was projected, and the products that do.
    struct Attention {
        Projection in[3], out;
        Rows rows[3];
        int heads = 0;
        ModelLayer* last = nullptr;  // the product behind it
    };
    bool find_attention(const ModelLayer& sdpa, Attention* a) const {
        Projection* in = a->in;
        for (size_t i = 0; i < 3; i++) {
            a->rows[i].heads = a->rows[0].heads;
            if (!find_projection(sdpa.inputs[i], &a->rows[i], &in[i])) return false;
        }
        const int width = in[0].outputs;
        if (in[2].factor != 1.f || in[0].factor * in[1].factor == 0.f) return false;
        const ModelLayer* permute = rows_again(sdpa.outputs[0], a->rows[0]);
        const ModelLayer* reshape = permute ? reader(permute->outputs[0], "Reshape") : nullptr;
        if (in[1].outputs != width || in[2].outputs != width || !joins(reshape, width))
            return false;
        a->heads = width / a->rows[0].size;
        for (const Rows& r : a->rows)
            if (r.of_item != a->rows[0].of_item || (r.of_item && r.of_item != a->heads))
                return false;
        a->last = reader(reshape->outputs[0], "InnerProduct");
        return is_projection(a->last, &a->out) && a->out.outputs == in[0].inputs;
    }

    // Whether all rows are those of as many items, keys as long as values.
    bool find_sequences(const Attention& a, SequenceAttention* found) const {
        for (int i = 0; i < 3; i++) {
            const Sequences s = sequences(a.in[i], a.rows[i], a.heads);
            if (s.form == Sequences::kNone || (i > 0 && !same(s.items, found->inputs[0].items)) ||
                (i == 2 && !same(s.length, found->inputs[1].length)))
                return false;
            found->inputs.push_back(s);
        }
        found->made = found->inputs[0];
        found->made.form = Sequences::kRows;
        found->output = a.last->outputs[0];
        return true;
    }

    // Rows of many short items are projected together faster than item by item: with up to 8 rows
    // an item, an encoder takes 1.5 to 2 times as long on a CPU, with 16 no longer.
    static bool has_short_items(const Attention& a, const SequenceAttention& s) {
        const int kShort = 16;
        return !s.made.items.is(1) && std::all_of(a.rows, a.rows + 3, [&](const Rows& r) {
            return r.rows > 0 && r.rows < kShort;
        });
    }

    bool replace(const ModelLayer& sdpa) {
        const bool mask = sdpa.params.get(5, 0) != 0;
        Attention a;
        if (sdpa.inputs.size() != (mask ? 4u : 3u) || sdpa.params.get(7, 0) != 0 ||
            sdpa.params.get(18, 0) != 0 || !find_attention(sdpa, &a))
            return false;
        SequenceAttention found;
        const bool several =
            a.rows[0].heads != a.heads ||
            std::any_of(a.rows, a.rows + 3, [](const Rows& r) { return r.batch || r.of_item; });
        const bool sequences = find_sequences(a, &found);
        if (several && (!sequences || !sequences_ || has_short_items(a, found))) return false;
        if (several && mask && !find_mask(sdpa.inputs[3], a.heads, a.rows[0].of_item, &found))
            return false;
        std::vector<std::string> inputs;
        for (const Projection& p : a.in) inputs.push_back(p.product->inputs[0]);
        if (inputs[1] == inputs[2]) inputs.pop_back();
        if (inputs.size() == 2 && inputs[0] == inputs[1]) inputs.pop_back();
        found.inputs.resize(inputs.size());
        if (mask) inputs.push_back(sdpa.inputs[3]);
        put(sdpa, a, inputs);
        if (sequences && sequences_) sequences_->push_back(found);
        return true;
    }

    // The layer in place of the last product.
    static void put(const ModelLayer& sdpa, const Attention& a,
                    const std::vector<std::string>& inputs) {
        const int width = a.in[0].outputs;
        ModelLayer made;
        made.type = "MultiHeadAttention";
        made.name = a.last->name;
        made.inputs = inputs, made.outputs = a.last->outputs;
        made.set("embed_dim", width);
        made.set("num_heads", a.heads);
        made.set("weight_data_size", width * a.in[0].inputs);
        made.set("kdim", a.in[1].inputs);
        made.set("vdim", a.in[2].inputs);
        made.set("attn_mask", sdpa.params.get(5, 0));
        const float scale = sdpa.params.get(6, 0.f), factor = a.in[0].factor * a.in[1].factor;
        const float usual = 1.f / sqrtf((float)a.rows[0].size);
        if (scale != 0.f || factor != 1.f)
            made.set("scale", (scale != 0.f ? scale : usual) * factor);
        const char* const kNames[] = {"q", "k", "v"};
        for (int i = 0; i < 3; i++) set_projection(a.in[i], kNames[i], &made);
        set_projection(a.out, "out", &made);
        *a.last = made;
    }

    Model* model_;
    const KnownDims& known_;
    Symbols& symbols_;
    std::vector<SequenceAttention>* sequences_;
    std::unordered_map<std::string, const ModelLayer*> makers_;
    std::unordered_map<std::string, std::vector<ModelLayer*>> readers_;
};

}  // namespace

Sequences sequences_of(const BlobDims& blob, const Dim& length, const Dim& items,
                       Symbols* symbols) {
    const std::vector<Dim>& d = blob.dims;
    Sequences s;
    s.length = length, s.items = items;
    if (d.size() < 2 || !d.back().known() || d.back().value < 1 || d.back().value > INT_MAX)
        return s;
    s.width = (int)d.back().value;
    const bool axes = d.size() == 3 && same(d[0], length) && same(d[1], items);
    if (axes) s.form = blob.batch ? Sequences::kBatch : Sequences::kAxes;
    // A reshape to axes can leave one size open.
    if (d.size() == 2 && !blob.batch && same(d[0], symbols->multiply(length, items)) &&
        (length.known() || items.known()))
        s.form = Sequences::kRows;
    return s;
}

int fuse_heads(Model* model, const KnownDims& known, Symbols* symbols,
               std::vector<SequenceAttention>* sequences) {
    return Heads(model, known, symbols, sequences).run();
}

}  // namespace onnx_tool
}  // namespace quoll
