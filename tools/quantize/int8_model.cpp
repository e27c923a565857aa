#include "quantize/int8_model.h"

#include <math.h>

#include <algorithm>

#include "layer/common/affine8.h"
#include "layer/common/int16_input.h"
#include "layer/nn/convolution.h"
#include "layer/nn/innerproduct.h"
#include "layer/quantize/affine.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// How many scales the weights of a layer have in ncnn's form, or in that with zero points.
int scale_count(const Layer& op, bool by_channel) {
    if (const Convolution* conv = as<Convolution>(&op))
        return conv->grouped && !by_channel ? conv->group : conv->num_output;
    return as<InnerProduct>(&op)->num_output;
}

float largest(const float* p, int count) {
    float most = 0.f;
    for (int i = 0; i < count; i++) {
        if (!std::isfinite(p[i])) return NAN;
        most = std::max(most, fabsf(p[i]));
    }
    return most;
}

// The clipping of a row of weights that costs least.
float mse_limit(const float* p, int count, float most) {
    double least = INFINITY;
    float best = most;
    for (float t = most; t > most * 0.5f; t -= most * 0.02f) {
        const double step = t / 127.0;
        double error = 0;
        for (int i = 0; i < count && error < least; i++) {
            const double q = std::max(-127.0, std::min(127.0, rint(p[i] / step)));
            error += (p[i] - q * step) * (p[i] - q * step);
        }
        if (error < least) least = error, best = t;
    }
    return best;
}

Mat to_mat(const std::vector<float>& values) {
    Mat m((int)values.size());
    std::copy(values.begin(), values.end(), (float*)m);
    return m;
}

}  // namespace

std::vector<float> weight_scales(const ModelLayer& layer, const WeightOptions& options,
                                 bool by_channel) {
    const std::unique_ptr<Layer> op = layer.make_operator();
    const Mat weight = float_weight(layer, "weight_data");
    if (!op || weight.empty()) return {};
    const int count = scale_count(*op, by_channel), each = weight.w / count;
    std::vector<float> scales;
    for (int i = 0; i < count; i++) {
        const float* row = (const float*)weight + (size_t)i * each;
        float most = largest(row, each);
        if (std::isnan(most)) {
            QUOLL_LOGE("[%s %s] weight_data has values that are NaN or infinite",
                       layer.type.c_str(), layer.name.c_str());
            return {};
        }
        if (options.mse && most > 0.f) most = mse_limit(row, each, most);
        const float scale = most > 0.f ? 127.f / most : 1.f;
        scales.push_back(std::isfinite(scale) ? scale : 1.f);
    }
    return scales;
}

namespace {

int check_input_scale(const ModelLayer& layer, float scale) {
    if (scale > 0.f && std::isfinite(scale)) return kOk;
    QUOLL_LOGE("[%s %s] scale of the input: expected a positive number, got %g", layer.type.c_str(),
               layer.name.c_str(), scale);
    return kError;
}

}  // namespace

int round_weights(const std::vector<float>& scales, bool by_channel, ModelLayer* layer) {
    const std::unique_ptr<Layer> op = layer->make_operator();
    const Mat weight = float_weight(*layer, "weight_data");
    if (!op || weight.empty()) return kError;
    const int expected = scale_count(*op, by_channel);
    if ((int)scales.size() != expected) {
        QUOLL_LOGE("[%s %s] %zu scales of weights, expected %d", layer->type.c_str(),
                   layer->name.c_str(), scales.size(), expected);
        return kError;
    }
    const Mat values = quantize_weight(weight, to_mat(scales));
    if (values.empty()) return kOutOfMemory;
    Convolution* const conv = as<Convolution>(op.get());
    // As ncnn2int8: 1, a scale per group; 2, one per channel.
    const int term = conv && conv->grouped ? 1 : 2;
    (conv ? conv->int8_scale_term : as<InnerProduct>(op.get())->int8_scale_term) = term;
    layer->set_params(*op);
    layer->set_weight("weight_data", values);
    layer->set_weight("weight_data_int8_scales", to_mat(scales));
    return kOk;
}

int round_input(float scale, ModelLayer* layer) {
    QUOLL_RETURN_IF_ERROR(check_input_scale(*layer, scale));
    layer->set_weight("bottom_blob_int8_scales", to_mat({scale}));
    return kOk;
}

int round_input16(float most, int bits, ModelLayer* layer, float* scale) {
    const int steps = std::min((1 << (bits - 1)) - 1, kInt16Limit);
    *scale = (float)steps / most;
    QUOLL_RETURN_IF_ERROR(round_input(*scale, layer));
    return layer->set("int8_affine", kInt16Input);
}

int round_input_affine(int index, const ValueRange& range, Model* model) {
    ModelLayer& layer = model->layers[index];
    const AffineRange affine(range.low, range.high);
    QUOLL_RETURN_IF_ERROR(round_input(1.f / affine.scale, &layer));
    layer.set("int8_affine", 1), layer.set("bottom_zero_point", affine.zero_point);
    const std::string blob = layer.inputs[0];
    for (const ModelLayer& other : model->layers) {
        if (!other.is<AffineQuantize>()) continue;
        const std::unique_ptr<Layer> op = other.make_operator();
        const AffineQuantize* rounds = as<AffineQuantize>(op.get());
        if (!rounds || other.inputs[0] != blob || rounds->scale != affine.scale ||
            rounds->zero_point != affine.zero_point)
            continue;
        layer.inputs[0] = other.outputs[0];
        return kOk;
    }
    std::string name = blob + "_int8";
    while (model->producer(name) >= 0) name += "_";
    layer.inputs[0] = name;
    ModelLayer& rounds = model->add("AffineQuantize", name, {blob}, {name});
    rounds.set("scale", affine.scale);
    return rounds.set("zero_point", affine.zero_point);
}

int make_affine(int layer, const std::vector<float>& scales, const ValueRange& range,
                Model* model) {
    QUOLL_RETURN_IF_ERROR(round_weights(scales, true, &model->layers[layer]));
    return round_input_affine(layer, range, model);
}

int make_int8(ModelLayer* layer, const std::vector<float>& scales, float input_scale) {
    QUOLL_RETURN_IF_ERROR(check_input_scale(*layer, input_scale));
    QUOLL_RETURN_IF_ERROR(round_weights(scales, false, layer));
    return round_input(input_scale, layer);
}

Mat dequantized_weight(const ModelLayer& layer) {
    const StoredWeight* stored = layer.find_weight("weight_data");
    const StoredWeight* scales = layer.find_weight("weight_data_int8_scales");
    if (!stored || stored->data.dtype != DType::s8 || !scales || scales->data.empty())
        return float_weight(layer, "weight_data");
    const int count = (int)stored->data.logical_shape().total(), rows = scales->data.w;
    const signed char* q = (const signed char*)stored->data.data;
    Mat m(count);
    for (int i = 0; i < count && !m.empty(); i++)
        m[i] = (float)q[i] / scales->data[(size_t)((int64_t)i * rows / count)];
    return m;
}

void correct_bias(const ModelLayer& before, const std::vector<double>& means, ModelLayer* layer) {
    const std::unique_ptr<Layer> op = layer->make_operator();
    const Mat exact = float_weight(before, "weight_data"), rounded = dequantized_weight(*layer);
    if (!op || exact.empty() || rounded.empty() || exact.w != rounded.w) return;
    const Convolution* conv = as<Convolution>(op.get());
    if (conv && conv->axes == 1) return;  // the means are of places, not of its channels
    const InnerProduct* product = as<InnerProduct>(op.get());
    const int outputs = conv ? conv->num_output : product->num_output;
    const int taps = conv ? conv->maxk() : 1, group = conv ? conv->group : 1;
    const int inputs = exact.w / outputs / taps;  // of a group
    // A blob of channels that an InnerProduct flattens: all values of a channel have its mean.
    const int places = product && !means.empty() ? inputs / (int)means.size() : 1;
    if (means.empty() || (int64_t)means.size() * places != (int64_t)inputs * group) return;
    const StoredWeight* stored = layer->find_weight("bias_data");
    Mat bias(outputs);
    if (bias.empty()) return;
    for (int p = 0; p < outputs; p++) {
        const int first = p / (outputs / group) * inputs;
        double sum = stored ? stored->data[p] : 0.f;
        for (int i = 0; i < inputs; i++) {
            const size_t at = ((size_t)p * inputs + i) * taps;
            double lost = 0;
            for (int k = 0; k < taps; k++) lost += (double)exact[at + k] - rounded[at + k];
            sum += lost * means[(size_t)(first + i) / places];
        }
        bias[p] = (float)sum;
    }
    if (!stored) layer->set("bias_term", 1);
    layer->set_weight("bias_data", bias);
}

int quantize_by_table(const ScaleTable& table, Model* model, std::vector<std::string>* done) {
    size_t known = 0;
    for (const Int8Target& target : int8_targets(*model)) {
        ModelLayer& layer = model->layers[target.layer];
        const auto weights = table.weights.find(layer.name), input = table.inputs.find(layer.name);
        known += weights != table.weights.end() || input != table.inputs.end();
        // A layer whose weights' line is commented out stays in float.
        if (target.already || weights == table.weights.end()) continue;
        if (!target.in_ncnn) {  // it would read the bytes as floats
            QUOLL_LOGW("[%s %s] stays in float: ncnn has no int8 form of it", layer.type.c_str(),
                       layer.name.c_str());
            continue;
        }
        if (input == table.inputs.end() || input->second.empty()) {
            QUOLL_LOGE("[%s %s] the table has scales of its weights and none of its input",
                       layer.type.c_str(), layer.name.c_str());
            return kError;
        }
        QUOLL_RETURN_IF_ERROR(make_int8(&layer, weights->second, input->second[0]));
        done->push_back(layer.name);
    }
    if (known > 0 || table.empty()) return kOk;
    QUOLL_LOGE("the table has no scales for any layer of this model");
    return kError;
}

}  // namespace quoll
