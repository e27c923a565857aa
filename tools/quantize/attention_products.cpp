#include "quantize/attention_products.h"

#include <algorithm>
#include <vector>

#include "layer/sequence/multiheadattention.h"
#include "quantize/targets.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// Kinds that leave the arithmetic as it is, in forms that the layer has itself.
bool stays(const std::string& kind) {
    return kind == "float" || kind == "fp16" || kind == "bf16" || kind == "table8";
}

// The layers that stand for one attention, in order.
class Expansion {
public:
    Expansion(const MultiHeadAttention& op, const ModelLayer& layer, const Model& model)
        : op_(op), layer_(layer), model_(model) {}

    int run() {
        const int count = (int)layer_.inputs.size() - op_.attn_mask;
        std::vector<std::string> in = {layer_.inputs[0], layer_.inputs[count > 1],
                                       layer_.inputs[(size_t)count - 1]};
        split(&in);
        const MultiHeadAttention::Projection* const parts[] = {&op_.q, &op_.k, &op_.v};
        const char* const names[] = {"q", "k", "v"};
        std::vector<std::string> heads;
        for (int i = 0; i < 3; i++) {
            const std::string rows = product(names[i], *parts[i], in[(size_t)i], "");
            if (rows.empty()) return kError;
            ModelLayer& shape = add("Reshape", names[i] + std::string("_heads"), rows);
            shape.set("w", op_.embed_dim / op_.num_heads);
            shape.set("h", op_.num_heads), shape.set("c", -1);
            heads.push_back(order(names[i] + std::string("_order"), shape.outputs[0]));
        }
        if (op_.attn_mask) heads.push_back(layer_.inputs.back());
        ModelLayer& attention = add("SDPA", "", "");
        attention.inputs = heads;
        attention.set("attn_mask", op_.attn_mask), attention.set("scale", op_.scale);
        ModelLayer& shape = add("Reshape", "rows", order("out_order", attention.outputs[0]));
        shape.set("w", op_.embed_dim), shape.set("h", -1);
        return product("out", op_.out, shape.outputs[0], layer_.outputs[0]).empty() ? kError : kOk;
    }
    const std::vector<ModelLayer>& layers() const { return made_; }

private:
    std::string unused(std::string blob) const {
        while (model_.producer(blob) >= 0) blob += "_";
        return blob;
    }
    // Its output has its name. The reference holds until the next one is added.
    ModelLayer& add(const char* type, const std::string& part, const std::string& input) {
        ModelLayer made;
        made.type = type, made.name = layer_.name + (part.empty() ? "" : "_" + part);
        made.inputs = {input}, made.outputs = {unused(made.name + "_" + type)};
        made_.push_back(made);
        return made_.back();
    }
    // Heads and rows change places.
    std::string order(const std::string& part, const std::string& input) {
        const std::string from = input;
        ModelLayer& made = add("Permute", part, from);
        made.set("order_type", 2);
        return made.outputs[0];
    }
    // Empty after a message.
    std::string product(const std::string& part, const MultiHeadAttention::Projection& p,
                        const std::string& input, const std::string& output) {
        const Mat weight = float_weight(layer_, (part + "_weight_data").c_str());
        const Mat bias = float_weight(layer_, (part + "_bias_data").c_str());
        if (weight.empty() || bias.empty()) return "";
        ModelLayer& made = add("InnerProduct", part, input);
        if (!output.empty()) made.outputs = {output};
        made.set("num_output", p.out), made.set("bias_term", 1);
        made.set("weight_data_size", weight.w);
        made.set_weight("weight_data", weight), made.set_weight("bias_data", bias);
        return made.outputs[0];
    }
    // A blob that is read more than once gets a copy for each.
    void split(std::vector<std::string>* in) {
        const std::vector<std::string> read = *in;
        for (const std::string& blob : read) {
            if (std::count(in->begin(), in->end(), blob) < 2) continue;
            ModelLayer& made = add("Split", "split" + std::to_string(made_.size()), blob);
            const std::string stem = made.outputs[0];
            made.outputs.clear();
            for (std::string& reader : *in) {
                if (reader != blob) continue;
                reader = unused(stem + "_" + std::to_string(made.outputs.size()));
                made.outputs.push_back(reader);
            }
        }
    }

    const MultiHeadAttention& op_;
    const ModelLayer layer_;
    const Model& model_;
    std::vector<ModelLayer> made_;
};

}  // namespace

int attention_to_products(QuantizeOptions* options, Model* model) {
    for (size_t i = 0; i < model->layers.size(); i++) {
        const ModelLayer& layer = model->layers[i];
        const std::string name = layer.name, kind = kind_of_layer(*options, name);
        if (!layer.is<MultiHeadAttention>() || stays(kind)) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        const MultiHeadAttention* attention = as<MultiHeadAttention>(op.get());
        if (!attention || attention->kv_cache || attention->quantize_term) continue;
        Expansion expansion(*attention, layer, *model);
        QUOLL_RETURN_IF_ERROR(expansion.run());
        const std::vector<ModelLayer>& made = expansion.layers();
        model->layers[i] = made[0];
        for (size_t k = 1; k < made.size(); k++)
            model->layers.insert(model->layers.begin() + (long)++i, made[k]);
        if (!options->layers.erase(name)) continue;
        for (const char* part : {"_q", "_k", "_v", "_out"})
            options->layers[name + part].kind = kind;
    }
    return kOk;
}

}  // namespace quoll
