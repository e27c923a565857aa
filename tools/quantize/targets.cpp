#include "quantize/targets.h"

#include <math.h>

#include <algorithm>
#include <functional>
#include <set>

#include "common/layer_fields.h"
#include "layer/activation/clip.h"
#include "layer/activation/gelu.h"
#include "layer/activation/sigmoid.h"
#include "layer/activation/swish.h"
#include "layer/activation/tanh.h"
#include "layer/control/memorydata.h"
#include "layer/control/split.h"
#include "layer/nn/convolution.h"
#include "layer/nn/innerproduct.h"
#include "layer/norm/softmax.h"
#include "layer/tensor/concat.h"

namespace quoll {

namespace {

bool moves_values(const ModelLayer& layer) {
    if (layer.custom() || layer.inputs.size() != 1) return false;
    if (layer.is<Split>()) return true;
    const std::unique_ptr<Layer> op = layer.make_operator();
    return op && (has_trait(*op, kMovesValues) || has_trait(*op, kChoosesValues));
}

ValueRange make_range(float low, float high) {
    ValueRange range;
    range.low = low, range.high = high;
    return range;
}

// The range of the results of an activation within a convolution or inner product.
ValueRange activation_range(int type, const Mat& params) {
    switch (type) {
        case kActivationClip:
            return make_range(params[0], params[1]);
        case kActivationSigmoid:
            return make_range(0.f, 1.f);
        default:
            return ValueRange();
    }
}

ValueRange weight_range(const ModelLayer& layer, const char* name) {
    const Mat values = float_weight(layer, name);
    ValueRange range;
    for (int i = 0; i < values.w && !values.empty(); i++)
        if (std::isfinite(values[i])) range.include(make_range(values[i], values[i]));
    return range;
}

}  // namespace

Mat float_weight(const ModelLayer& layer, const char* name) {
    const StoredWeight* stored = layer.find_weight(name);
    if (!stored || stored->data.empty()) return Mat();
    const Mat wide = stored->widened();
    return wide.empty() || wide.dims == 1 ? wide : wide.reshape((int)wide.logical_shape().total());
}

float own_input_scale(const ModelLayer& layer) {
    // Inputs of 16 bits, or with a zero point, have other steps than 127 for each sign.
    const std::unique_ptr<Layer> op = layer.make_operator();
    if (!op || int_field(op.get(), "int8_affine") != 0) return 0.f;
    const StoredWeight* scale = layer.find_weight("bottom_blob_int8_scales");
    return scale && !scale->data.empty() && scale->data.w == 1 ? (float)scale->data[0] : 0.f;
}

std::string range_source(const Model& model, const std::string& blob) {
    std::string at = blob;
    for (int maker = model.producer(at); maker >= 0 && moves_values(model.layers[maker]);
         maker = model.producer(at))
        at = model.layers[maker].inputs[0];
    return at;
}

bool takes_values_of(const Model& model, const std::string& blob, const std::string& other) {
    const auto original = [&](std::string at) {
        for (int maker = model.producer(at); maker >= 0 && model.layers[maker].is<Split>();
             maker = model.producer(at))
            at = model.layers[maker].inputs[0];
        return at;
    };
    const std::string from = original(other);
    std::string at = original(blob);
    while (at != from) {
        const int maker = model.producer(at);
        if (maker < 0 || !moves_values(model.layers[maker])) return false;
        at = original(model.layers[maker].inputs[0]);
    }
    return true;
}

std::vector<Int8Target> int8_targets(const Model& model) {
    std::vector<Int8Target> targets;
    for (size_t i = 0; i < model.layers.size(); i++) {
        const ModelLayer& layer = model.layers[i];
        if (layer.custom() || layer.inputs.empty() || layer.outputs.empty()) continue;
        const bool product = layer.is<InnerProduct>(), conv = layer.is<Convolution>();
        if (!product && !conv) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) continue;
        bool already = false, possible = true, in_ncnn = true;
        if (const Convolution* c = as<Convolution>(op.get())) {
            already = c->int8_scale_term != 0;
            // Zero weights of int8 are exact; other borders are rounded otherwise than values.
            possible = c->has_int8_form() && !c->dynamic_weight && c->pad_value == 0.f;
            in_ncnn = c->axes == 2;
        } else {
            already = as<InnerProduct>(op.get())->int8_scale_term != 0;
        }
        if (!possible) continue;
        const std::string& blob = layer.inputs[0];
        targets.push_back({(int)i, layer.name, blob, range_source(model, blob), already, in_ncnn});
    }
    return targets;
}

std::vector<std::string> blobs_before_swish(const Model& model) {
    std::vector<std::string> blobs;
    for (const ModelLayer& layer : model.layers) {
        if (!layer.is<Swish>() && !layer.is<GELU>() && !layer.is<Sigmoid>()) continue;
        std::string at = layer.inputs[0];
        bool shared = model.consumers(at).size() > 1;
        for (int maker = model.producer(at); maker >= 0 && model.layers[maker].is<Split>();
             maker = model.producer(at))
            at = model.layers[maker].inputs[0], shared = true;
        if (shared || !layer.is<Sigmoid>()) blobs.push_back(at);
    }
    return blobs;
}

std::map<std::string, std::string> joined_sources(const Model& model,
                                                  const std::vector<Int8Target>& targets) {
    std::map<std::string, std::string> parent;
    const std::function<std::string(const std::string&)> find = [&](const std::string& blob) {
        const auto known = parent.find(blob);
        return known == parent.end() || known->second == blob ? blob : find(known->second);
    };
    for (const ModelLayer& layer : model.layers) {
        if (!layer.is<Concat>()) continue;
        const std::string to = find(layer.outputs[0]);
        for (const std::string& input : layer.inputs) parent[find(range_source(model, input))] = to;
    }
    std::map<std::string, std::string> joined;
    for (const Int8Target& target : targets) joined[target.source] = find(target.source);
    return joined;
}

ValueRange hard_range(const Model& model, const std::string& blob) {
    const int maker = model.producer(blob);
    if (maker < 0 || model.layers[maker].custom()) return ValueRange();
    const ModelLayer& layer = model.layers[maker];
    if (layer.is<MemoryData>()) return weight_range(layer, "data");
    if (layer.is<Sigmoid>() || layer.is<Softmax>()) return make_range(0.f, 1.f);
    if (layer.is<TanH>()) return make_range(-1.f, 1.f);
    const std::unique_ptr<Layer> op = layer.make_operator();
    if (const Clip* clip = as<Clip>(op.get()))
        return clip->min > -1e30f && clip->max < 1e30f ? make_range(clip->min, clip->max)
                                                       : ValueRange();
    if (const Convolution* conv = as<Convolution>(op.get()))
        return activation_range(conv->activation_type, conv->activation_params);
    if (const InnerProduct* product = as<InnerProduct>(op.get()))
        return activation_range(product->activation_type, product->activation_params);
    return ValueRange();
}

}  // namespace quoll
