// Layers that one before takes over: a sum that is its bias, a reshape of what it reshaped.
#include "onnx/fuse_layers.h"

#include <unordered_map>

#include "layer/control/memorydata.h"
#include "layer/elementwise/binaryop.h"
#include "layer/nn/innerproduct.h"
#include "layer/sequence/sdpa.h"
#include "layer/tensor/reshape.h"
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

    // Neither reorders values nor moves the batch axis.
    static bool plain_reshape(const ModelLayer& layer) {
        bool plain = true;
        for (int id : {3, 6, 12, 13})
            plain = plain && (!layer.is<Reshape>() || layer.params.type(id) == 0);
        return plain;
    }

    // A reshape of a reshape is one.
    int merge_reshapes() {
        std::unordered_map<std::string, int> readers;
        for (const ModelLayer& layer : model_->layers)
            for (const std::string& blob : layer.inputs) readers[blob]++;
        int count = 0;
        for (ModelLayer& layer : model_->layers) {
            if (!layer.is<Reshape>() || layer.inputs.size() != 1) continue;
            bool copies = false;  // a size of the input
            for (int id : {0, 1, 2, 11}) copies |= layer.params.get(id, -233) == 0;
            const ModelLayer* first = copies ? nullptr : maker(layer.inputs[0]);
            if (!first || !plain_reshape(layer) || !plain_reshape(*first) ||
                readers[layer.inputs[0]] != 1 || first->inputs.size() != 1 ||
                !has_trait(*first->prototype(), kSharesMemory))
                continue;
            layer.inputs = first->inputs;
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
    if (!attentions) return;
    remove_unused();  // reshapes that were merged read what others do
    count("fused: MultiHeadAttention", fuse_heads(&model));
}

}  // namespace onnx_tool
}  // namespace quoll
