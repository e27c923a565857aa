// Layers that one before takes over: a sum that is its bias, a reshape of what it reshaped.
#include "onnx/fuse_layers.h"

#include <algorithm>
#include <unordered_map>

#include "layer/control/memorydata.h"
#include "layer/elementwise/binaryop.h"
#include "layer/nn/innerproduct.h"
#include "layer/sequence/sdpa.h"
#include "layer/tensor/permute.h"
#include "layer/tensor/reshape.h"
#include "layer/tensor/tensorshape.h"
#include "onnx/converter.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

class Fuser {
public:
    explicit Fuser(Model* model) : model_(model) {
        for (ModelLayer& layer : model->layers)
            for (const std::string& blob : layer.outputs) producer_[blob] = &layer;
    }

    // A constant of one value per output that is added to an InnerProduct is its bias.
    int fuse_bias() {
        std::unordered_map<std::string, int> readers;
        for (const ModelLayer& layer : model_->layers)
            for (const std::string& blob : layer.inputs) readers[blob]++;
        int count = 0;
        for (ModelLayer& sum : model_->layers) {
            if (!sum.is<BinaryOp>() || sum.inputs.size() != 2 || sum.params.get(0, 0) != kAdd)
                continue;
            for (int i = 0; i < 2; i++) {
                ModelLayer* product = const_cast<ModelLayer*>(maker(sum.inputs[i]));
                const ModelLayer* bias = maker(sum.inputs[1 - i]);
                if (!product || !bias || !product->is<InnerProduct>() || !bias->is<MemoryData>() ||
                    product->params.get(1, 0) != 0 || readers[sum.inputs[i]] != 1)
                    continue;
                const StoredWeight* values = bias->find_weight("data");
                const int outputs = product->params.get(0, 0);
                if (!values || bias->params.get(0, 0) != outputs || bias->params.get(22, 0) != 0 ||
                    values->data.logical_shape().total() != (size_t)outputs)
                    continue;
                product->set("bias_term", 1);
                product->set_weight("bias_data", values->data);
                product->outputs = sum.outputs;
                sum.inputs.clear(), sum.outputs.clear();  // nothing needs it any more
                count++;
                break;
            }
        }
        return count;
    }

    // A reshape of a reshape is one.
    int merge_reshapes() {
        std::unordered_map<std::string, int> readers;
        for (const ModelLayer& layer : model_->layers)
            for (const std::string& blob : layer.inputs) readers[blob]++;
        int count = 0;
        for (ModelLayer& layer : model_->layers) {
            if (!is_plain_reshape(layer)) continue;
            bool copies = false;  // a size of the input
            for (int id : {0, 1, 2, 11}) copies |= layer.params.get(id, -233) == 0;
            const ModelLayer* first = copies ? nullptr : maker(layer.inputs[0]);
            if (!first || (first->is<Reshape>() && !is_plain_reshape(*first)) ||
                readers[layer.inputs[0]] != 1 || first->inputs.size() != 1 ||
                !has_trait(*first->prototype(), kSharesMemory))
                continue;
            layer.inputs = first->inputs;
            count++;
        }
        return count;
    }

    // An exchange of two axes, one of which has one place, is a reshape.
    int reshape_permutes() {
        int count = 0;
        for (ModelLayer& layer : model_->layers) {
            const int kExchangesChannelsAndRows = 2, kNone = -233;
            if (!layer.is<Permute>() || layer.inputs.size() != 1 ||
                layer.params.get(0, 0) != kExchangesChannelsAndRows)
                continue;
            const ModelLayer* first = maker(layer.inputs[0]);
            if (!first || !is_plain_reshape(*first)) continue;
            int sizes[3];
            for (int i = 0; i < 3; i++) sizes[i] = first->params.get(i, kNone);
            const bool three =
                std::none_of(sizes, sizes + 3, [](int size) { return size == 0 || size == kNone; });
            if (!three || first->params.get(11, kNone) != kNone || (sizes[1] != 1 && sizes[2] != 1))
                continue;
            ModelLayer made;
            made.type = "Reshape";
            made.name = layer.name, made.inputs = layer.inputs, made.outputs = layer.outputs;
            made.set("w", sizes[0]), made.set("h", sizes[2]), made.set("c", sizes[1]);
            layer = made;
            count++;
        }
        return count;
    }

private:
    const ModelLayer* maker(const std::string& blob) const {
        const auto found = producer_.find(blob);
        return found == producer_.end() ? nullptr : found->second;
    }

    Model* model_;
    std::unordered_map<std::string, const ModelLayer*> producer_;
};

}  // namespace

bool is_plain_reshape(const ModelLayer& layer) {
    const int kHasPermute = 3, kExpression = 6, kInputBatch = 12, kOutputBatch = 13;
    for (int id : {kHasPermute, kExpression, kInputBatch, kOutputBatch})
        if (layer.params.type(id) != 0) return false;
    return layer.is<Reshape>() && layer.inputs.size() == 1;
}

// The sizes of a blob behind a reshape, of those before it; false if they do not follow.
static bool reshaped_dims(const ModelLayer& layer, BlobDims* dims, Symbols* symbols) {
    std::vector<Dim> to;
    int open = -1;
    Dim others(1);
    for (int id : {2, 11, 1, 0}) {  // c, d, h and w
        const int size = layer.params.get(id, -233);
        if (size == -233) continue;
        if (size == 0 || (size == -1 && open >= 0)) return false;
        if (size == -1) open = (int)to.size();
        to.push_back(Dim(size));
        if (size != -1) others = symbols->multiply(others, to.back());
    }
    std::vector<Dim> from(dims->dims.begin() + dims->batch, dims->dims.end());
    if (open >= 0) to[(size_t)open] = symbols->divide(symbols->product(from), others);
    if (dims->batch) to.insert(to.begin(), dims->dims[0]);
    dims->dims = to;
    return true;
}

KnownDims Converter::known_dims() {
    KnownDims known;
    for (const auto& value : values_)
        for (const auto& blob : value.second->blobs) {
            std::vector<Dim> shape((size_t)blob.first.first, Dim(1));
            shape.insert(shape.end(), value.second->shape.begin(), value.second->shape.end());
            const Form& form = blob.first.second;
            if (form.rank() != (int)shape.size()) continue;
            BlobDims& dims = known[blob.second];
            dims = {form.batch, mat_dims(shape, form)};
            if (form.batch) dims.dims.insert(dims.dims.begin(), shape[0]);
        }
    // Between two forms of a value there may be blobs that have none of its forms.
    for (const ModelLayer& layer : model.layers) {
        if (layer.outputs.size() != 1 || known.count(layer.outputs[0])) continue;
        const auto from = layer.inputs.size() == 1 ? known.find(layer.inputs[0]) : known.end();
        if (from == known.end()) continue;
        BlobDims made = from->second;
        if (layer.is<BatchAxis>())
            made.batch = layer.params.get(0, 0) == 0;
        else if (!is_plain_reshape(layer) || !reshaped_dims(layer, &made, &symbols))
            continue;
        known[layer.outputs[0]] = made;
    }
    return known;
}

// Reshapes to the sizes that a blob has already; what is left of longer chains.
int Converter::remove_reshapes_to_same() {
    KnownDims sizes = known_dims();
    for (auto& size : sizes) {  // a batch of one item is that item
        if (!size.second.batch) continue;
        size.second.batch = !size.second.dims[0].is(1);
        size.second.dims.erase(size.second.dims.begin());
    }
    std::unordered_map<std::string, std::string> instead;
    for (ModelLayer& layer : model.layers) {
        for (std::string& blob : layer.inputs) {
            const auto other = instead.find(blob);
            if (other != instead.end()) blob = other->second;
        }
        if (!is_plain_reshape(layer) ||
            std::count(outputs_.begin(), outputs_.end(), layer.outputs[0]))
            continue;
        const auto from = sizes.find(layer.inputs[0]), to = sizes.find(layer.outputs[0]);
        if (from != sizes.end() && to != sizes.end() && from->second.batch == to->second.batch &&
            same(from->second.dims, to->second.dims))
            instead[layer.outputs[0]] = layer.inputs[0];
    }
    return (int)instead.size();
}

int Converter::fuse_attention() {
    const KnownDims known = known_dims();
    const Model before = model;
    std::vector<SequenceAttention> sequences;
    const int count = fuse_heads(&model, known, &symbols, &sequences);
    if (sequences.empty()) return count;
    remove_unused();  // what the attention was made of would keep sequences in use
    if (by_items(this, known, outputs_, sequences)) return count;
    model = before;
    return fuse_heads(&model, known, &symbols, nullptr);
}

void Converter::fuse() {
    const auto count = [&](const char* what, int times) {
        if (times) report_->counts[what] += times;
    };
    // Each looks at all blobs, which takes long where there are many.
    int products = 0, reshapes = 0, attentions = 0;
    for (const ModelLayer& layer : model.layers)
        products += layer.is<InnerProduct>(), reshapes += layer.is<Reshape>(),
            attentions += layer.is<SDPA>();
    if (products) {
        count("biases into InnerProduct", Fuser(&model).fuse_bias());
        count("products split", split_products(&model));
    }
    count("slices joined", join_slices(&model));
    if (reshapes) count("reshapes of reshapes", Fuser(&model).merge_reshapes());
    if (attentions) {
        remove_unused();  // reshapes that were merged read what others do
        count("fused: MultiHeadAttention", fuse_attention());
    }
    // Last, since exchanges of axes tell what is attention.
    if (reshapes && Fuser(&model).reshape_permutes()) {
        remove_unused();
        count("reshapes of reshapes", Fuser(&model).merge_reshapes());
    }
    if (reshapes) count("reshapes to the same sizes", remove_reshapes_to_same());
}

}  // namespace onnx_tool
}  // namespace quoll
