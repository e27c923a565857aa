// Layers that together are one.
#include <math.h>

#include <map>

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

    // x / 2 (1 + erf(x / sqrt 2)) as exporters write it; how many there were.
    int fuse_gelu() {
        int count = 0;
        for (ModelLayer& layer : model_->layers) {
            std::string x;
            if (!gelu(layer, &x)) continue;
            layer.type = "GELU";
            layer.inputs.assign(1, x);
            layer.params.clear();
            count++;
        }
        return count;
    }

    // A constant of one value an output that is added to an InnerProduct is its bias.
    int fuse_bias() {
        std::map<std::string, int> readers;
        for (const ModelLayer& layer : model_->layers)
            for (const std::string& blob : layer.inputs) readers[blob]++;
        int count = 0;
        for (ModelLayer& sum : model_->layers) {
            if (sum.type != "BinaryOp" || sum.inputs.size() != 2 || sum.params.get(0, 0) != kAdd)
                continue;
            for (int i = 0; i < 2; i++) {
                ModelLayer* product = const_cast<ModelLayer*>(maker(sum.inputs[i]));
                const ModelLayer* bias = maker(sum.inputs[1 - i]);
                if (!product || !bias || product->type != "InnerProduct" ||
                    bias->type != "MemoryData" || product->params.get(1, 0) != 0 ||
                    readers[sum.inputs[i]] != 1)
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

private:
    const ModelLayer* maker(const std::string& blob) const {
        const auto found = producer_.find(blob);
        return found == producer_.end() ? nullptr : found->second;
    }
    static bool with_number(const ModelLayer* layer, int op_type, double b) {
        return layer && layer->type == "BinaryOp" && layer->params.get(1, 0) == 1 &&
               layer->params.get(0, 0) == op_type &&
               fabs(layer->params.get(2, 0.f) - b) <= 1e-5 * fabs(b);
    }
    static bool product(const ModelLayer* layer) {
        return layer && layer->type == "BinaryOp" && layer->params.get(1, 0) == 0 &&
               layer->params.get(0, 0) == kMul && layer->inputs.size() == 2;
    }
    // Whether a blob is 1 + erf(x / sqrt 2).
    bool gate(const std::string& blob, const std::string& x) const {
        const ModelLayer* sum = maker(blob);
        if (!with_number(sum, kAdd, 1)) return false;
        const ModelLayer* erf = maker(sum->inputs[0]);
        if (!erf || erf->type != "Erf") return false;
        const ModelLayer* scaled = maker(erf->inputs[0]);
        return (with_number(scaled, kDiv, sqrt(2.0)) || with_number(scaled, kMul, sqrt(0.5))) &&
               scaled->inputs[0] == x;
    }
    bool gelu(const ModelLayer& last, std::string* x) const {
        if (with_number(&last, kMul, 0.5)) {  // (x gate) / 2
            const ModelLayer* both = maker(last.inputs[0]);
            if (!product(both)) return false;
            for (int i = 0; i < 2; i++)
                if (gate(both->inputs[1 - i], *x = both->inputs[i])) return true;
            return false;
        }
        if (!product(&last)) return false;
        for (int i = 0; i < 2; i++) {  // (x / 2) gate
            const ModelLayer* half = maker(last.inputs[i]);
            // x (gate / 2)
            if (with_number(half, kMul, 0.5) && gate(half->inputs[0], *x = last.inputs[1 - i]))
                return true;
            if (with_number(half, kMul, 0.5) && gate(last.inputs[1 - i], *x = half->inputs[0]))
                return true;
        }
        return false;
    }

    Model* model_;
    std::map<std::string, const ModelLayer*> producer_;
};

}  // namespace

void Converter::fuse() {
    Fuser fuser(&model);
    const int gelus = fuser.fuse_gelu(), biases = fuser.fuse_bias();
    if (gelus) report_->counts["GELU from Erf"] += gelus;
    if (biases) report_->counts["biases into InnerProduct"] += biases;
}

}  // namespace onnx_tool
}  // namespace quoll
