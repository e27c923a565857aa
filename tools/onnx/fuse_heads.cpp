// Attention between heads of projected rows as one layer.
#include "onnx/fuse_layers.h"

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
    explicit Heads(Model* model) : model_(model) {
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

    // Exchanges rows and heads, of three axes.
    static bool exchanges(const ModelLayer* permute) {
        return permute && permute->params.get(0, 0) == 2;
    }

    struct Rows {
        int heads = 0, size = 0, rows = 0;  // heads: of all items; -1 where their number is open
    };
    // [rows][heads][size]. One row may be a vector elsewhere.
    static bool splits(const ModelLayer* reshape, Rows* r) {
        return has_three_axes(reshape, &r->size, &r->heads, &r->rows) && r->rows != 1;
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
        const ModelLayer* same = maker(blob, "Reshape");
        const ModelLayer* permute = maker(same ? same->inputs[0] : blob, "Permute");
        const ModelLayer* reshape = permute ? maker(permute->inputs[0], "Reshape") : nullptr;
        Rows r;
        if (!exchanges(permute) || !splits(reshape, &r) || (same && !keeps(same, r))) return false;
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
        const ModelLayer* const same = reader(heads, "Reshape");
        const ModelLayer* const permute = reader(same ? same->outputs[0] : heads, "Permute");
        const bool of_three = exchanges(permute) && (!same || keeps(same, r));
        const bool of_four = permute && permute->params.get(0, 0) == 12 && is_item(same, r);
        return of_three || of_four ? permute : nullptr;
    }

    // The batch of items [rows][width] whose rows a blob has as [rows of all items][width], row
    // after row of the items, as torch.nn.MultiheadAttention computes on them; or nothing.
    std::string batch_of(const std::string& blob, int width) const {
        const ModelLayer* reshape = any_maker(blob, "Reshape");
        if (!joins(reshape, width)) return "";
        const ModelLayer* permute = any_maker(reshape->inputs[0], "Permute");
        const ModelLayer* axis =
            exchanges(permute) ? any_maker(permute->inputs[0], "BatchAxis") : nullptr;
        return axis && axis->params.get(0, 0) == 1 ? axis->inputs[0] : "";
    }

    // The layer behind such rows that makes a batch of items of them again.
    ModelLayer* batch_again(const std::string& blob, int width, int items, int rows) const {
        const ModelLayer* reshape = reader(blob, "Reshape");
        int w = 0, h = 0, c = 0;
        if (!has_three_axes(reshape, &w, &h, &c) || w != width || h != items || c != rows)
            return nullptr;
        const ModelLayer* permute = reader(reshape->outputs[0], "Permute");
        ModelLayer* axis = exchanges(permute) ? reader(permute->outputs[0], "BatchAxis") : nullptr;
        return axis && axis->params.get(0, 0) == 0 ? axis : nullptr;
    }

    // Of all heads and items alike.
    bool is_common_mask(const std::string& blob) const {
        const ModelLayer* mask = any_maker(blob, "MemoryData");
        return mask && mask->params.get(1, 0) > 0 && mask->params.get(2, 0) <= 1 &&
               mask->params.get(11, 0) == 0;
    }

    static void set_projection(const Projection& p, const std::string& name, ModelLayer* to) {
        to->set_weight((name + "_weight_data").c_str(),
                       p.product->find_weight("weight_data")->widened());
        const StoredWeight* bias = p.product->find_weight("bias_data");
        Mat values = bias ? bias->data : Mat(p.outputs);
        if (!bias) values.fill(0.f);
        to->set_weight((name + "_bias_data").c_str(), values);
    }

    bool replace(const ModelLayer& sdpa) {
        const bool mask = sdpa.params.get(5, 0) != 0;
        if (sdpa.inputs.size() != (mask ? 4u : 3u) || sdpa.params.get(7, 0) != 0 ||
            sdpa.params.get(18, 0) != 0)
            return false;
        Projection in[3], out;
        Rows queries, others;
        if (!find_projection(sdpa.inputs[0], &queries, &in[0])) return false;
        others.heads = queries.heads;
        for (size_t i : {1, 2})
            if (!find_projection(sdpa.inputs[i], &others, &in[i])) return false;
        const int width = in[0].outputs;
        const float factor = in[0].factor * in[1].factor;
        if (in[2].factor != 1.f || factor == 0.f) return false;
        const ModelLayer* permute = rows_again(sdpa.outputs[0], queries);
        const ModelLayer* reshape = permute ? reader(permute->outputs[0], "Reshape") : nullptr;
        if (in[1].outputs != width || in[2].outputs != width || !joins(reshape, width))
            return false;
        ModelLayer* last = reader(reshape->outputs[0], "InnerProduct");
        if (!is_projection(last, &out) || out.outputs != in[0].inputs) return false;
        std::vector<std::string> inputs;
        for (const Projection& p : in) inputs.push_back(p.product->inputs[0]);
        const int heads = width / queries.size;
        if (queries.heads != heads) {  // of several items
            if (queries.heads != -1 && queries.heads % heads != 0) return false;
            if (mask && !is_common_mask(sdpa.inputs[3])) return false;
            for (size_t i = 0; i < 3; i++) {
                inputs[i] = batch_of(inputs[i], in[i].inputs);
                if (inputs[i].empty()) return false;
            }
            const int items = queries.heads == -1 ? -1 : queries.heads / heads;
            last = batch_again(last->outputs[0], out.outputs, items, queries.rows);
            if (!last) return false;
        }
        if (inputs[1] == inputs[2]) inputs.pop_back();
        if (inputs.size() == 2 && inputs[0] == inputs[1]) inputs.pop_back();
        if (mask) inputs.push_back(sdpa.inputs[3]);

        ModelLayer made;
        made.type = "MultiHeadAttention";
        made.name = last->name;
        made.inputs = inputs, made.outputs = last->outputs;
        made.set("embed_dim", width);
        made.set("num_heads", heads);
        made.set("weight_data_size", width * in[0].inputs);
        made.set("kdim", in[1].inputs);
        made.set("vdim", in[2].inputs);
        made.set("attn_mask", mask ? 1 : 0);
        const float scale = sdpa.params.get(6, 0.f);
        const float usual = 1.f / sqrtf((float)queries.size);
        if (scale != 0.f || factor != 1.f)
            made.set("scale", (scale != 0.f ? scale : usual) * factor);
        const char* const kNames[] = {"q", "k", "v"};
        for (int i = 0; i < 3; i++) set_projection(in[i], kNames[i], &made);
        set_projection(out, "out", &made);
        *last = made;
        return true;
    }

    Model* model_;
    std::unordered_map<std::string, const ModelLayer*> makers_;
    std::unordered_map<std::string, std::vector<ModelLayer*>> readers_;
};

}  // namespace

int fuse_heads(Model* model) { return Heads(model).run(); }

}  // namespace onnx_tool
}  // namespace quoll
