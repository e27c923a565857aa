#include "quantize/equalise.h"

#include <math.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "graph/analysis.h"
#include "layer/control/split.h"
#include "layer/nn/convolution.h"
#include "layer/nn/innerproduct.h"
#include "layer/nn/pooling.h"
#include "layer/norm/layernorm.h"
#include "layer/norm/rmsnorm.h"
#include "quantize/targets.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// Weights as they lie in a layer: [outputs][inputs of a group][taps].
struct Weights {
    ModelLayer* layer = nullptr;
    const char *weight_name = "weight_data", *bias_name = "bias_data";
    Mat values, bias;
    int outputs = 0, inputs = 0, taps = 1;
    bool depthwise = false;

    // False for layers whose weights cannot be scaled by channel.
    bool read(ModelLayer* of) {
        const std::unique_ptr<Layer> op = of->custom() ? nullptr : of->make_operator();
        if (const InnerProduct* product = as<InnerProduct>(op.get()))
            return product->int8_scale_term == 0 && read_rows(of, product->num_output);
        if (const LayerNorm* norm = as<LayerNorm>(op.get()))
            return norm->affine && read_norm(of, norm->affine_size);
        if (const RMSNorm* norm = as<RMSNorm>(op.get()))
            return norm->affine && read_norm(of, norm->affine_size);
        const Convolution* conv = as<Convolution>(op.get());
        if (!conv || conv->axes != 2 || conv->int8_scale_term || conv->dynamic_weight ||
            conv->pad_value != 0.f)
            return false;
        depthwise = conv->grouped && conv->group == conv->num_output &&
                    conv->weight_data_size == conv->maxk() * conv->group;
        if (conv->group != 1 && !depthwise) return false;
        taps = conv->maxk();
        return read_rows(of, conv->num_output);
    }
    // A factor and an offset for each value.
    bool read_norm(ModelLayer* of, int size) {
        weight_name = "gamma_data", bias_name = "beta_data";
        return read_rows(of, size);
    }
    bool read_rows(ModelLayer* of, int count) {
        layer = of, outputs = count;
        values = float_weight(*of, weight_name).clone();
        bias = float_weight(*of, bias_name).clone();
        inputs = values.w / std::max(1, outputs) / taps;
        return !values.empty();
    }
    float* row(int output) { return (float*)values + (size_t)output * inputs * taps; }
    void scale_outputs(const std::vector<float>& s) {
        for (int p = 0; p < outputs; p++) {
            for (int i = 0; i < inputs * taps; i++) row(p)[i] *= s[(size_t)p];
            if (!bias.empty()) bias[p] *= s[(size_t)p];
        }
    }
    void unscale_inputs(const std::vector<float>& s) {
        for (int p = 0; p < outputs; p++)
            for (int i = 0; i < inputs * taps; i++)
                row(p)[i] /= s[(size_t)(depthwise ? p : i / taps)];
    }
    void store() {
        layer->set_weight(weight_name, values);
        if (!bias.empty()) layer->set_weight(bias_name, bias);
    }
};

bool scales_with_input(int activation) {
    return activation == kActivationNone || activation == kActivationReLU ||
           activation == kActivationLeakyReLU;
}

// A blob, who makes it and the convolutions, or the inner products, that read it.
struct Joint {
    std::string blob;
    int maker;
    std::vector<int> readers;
};

// Layers that read a blob, through those that keep channels apart and scale with them: convolutions
// its channels, or inner products its rows.
bool find_readers(const Model& model, const std::string& blob, bool rows, int depth,
                  std::vector<int>* readers) {
    const std::vector<int> direct = model.consumers(blob);
    if (direct.empty() || depth > 8) return false;
    for (int index : direct) {
        const ModelLayer& layer = model.layers[index];
        const std::unique_ptr<Layer> op = layer.custom() ? nullptr : layer.make_operator();
        const Pooling* pooling = as<Pooling>(op.get());
        if (layer.is<Split>() || (!rows && pooling && pooling->axes == 2)) {
            for (const std::string& output : layer.outputs)
                if (!find_readers(model, output, rows, depth + 1, readers)) return false;
            continue;
        }
        if (!op || !(rows ? layer.is<InnerProduct>() : layer.is<Convolution>())) return false;
        if (layer.inputs.size() != 1) return false;
        readers->push_back(index);
    }
    return true;
}

std::vector<Joint> find_joints(const Model& model) {
    std::vector<Joint> joints;
    for (int index : execution_order(model)) {
        const ModelLayer& layer = model.layers[index];
        if (layer.custom() || layer.inputs.size() != 1) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        const Convolution* conv = as<Convolution>(op.get());
        const InnerProduct* product = as<InnerProduct>(op.get());
        const bool norm = layer.is<LayerNorm>() || layer.is<RMSNorm>();
        if (!norm && !(conv && scales_with_input(conv->activation_type)) &&
            !(product && scales_with_input(product->activation_type)))
            continue;
        Joint joint = {layer.outputs[0], index, {}};
        if (find_readers(model, joint.blob, !conv, 0, &joint.readers)) joints.push_back(joint);
    }
    return joints;
}

// Squared error of all outputs of a reader, up to a factor: from activations rounded with one step,
// and from weights rounded with one step a row.
double cost_of(Weights& w, const std::vector<float>& limits, const std::vector<float>& s) {
    double most = 0, cost = 0, spread = 0;
    for (size_t c = 0; c < limits.size(); c++) {
        most = std::max(most, (double)limits[c] * s[c]);
        // Values are a third of their extremes or so.
        spread += (double)limits[c] * s[c] * limits[c] * s[c] / 9;
    }
    for (int p = 0; p < w.outputs; p++) {
        double squares = 0, largest = 0;
        for (int i = 0; i < w.inputs * w.taps; i++) {
            const double v = w.row(p)[i] / s[(size_t)(w.depthwise ? p : i / w.taps)];
            squares += v * v, largest = std::max(largest, fabs(v));
        }
        cost += most * most * squares;
        const double own = (double)limits[(size_t)p % limits.size()] * s[(size_t)p % limits.size()];
        cost += largest * largest * w.taps * (w.depthwise ? own * own / 9 : spread);
    }
    return cost;
}

// How large the weights are that a channel meets.
float column_limit(Weights& w, int channel) {
    float most = 0.f;
    for (int p = w.depthwise ? channel : 0; p < (w.depthwise ? channel + 1 : w.outputs); p++)
        for (int k = 0; k < w.taps; k++)
            most = std::max(most, fabsf(w.row(p)[(w.depthwise ? 0 : channel * w.taps) + k]));
    return most;
}

std::vector<float> best_factors(const std::vector<float>& limits, std::vector<Weights>* readers) {
    const size_t count = limits.size();
    std::vector<float> columns(count, 0.f), best(count, 1.f);
    for (size_t c = 0; c < count; c++)
        for (Weights& w : *readers)
            if (!w.depthwise) columns[c] = std::max(columns[c], column_limit(w, (int)c));
    const float widest = *std::max_element(limits.begin(), limits.end());
    const float tallest = *std::max_element(columns.begin(), columns.end());
    double least = INFINITY;
    for (float power : {0.f, 0.25f, 0.5f, 0.75f, 1.f}) {
        // With dense readers: SmoothQuant's factors, largest activation to largest weight.
        for (int with_columns = 0; with_columns < (tallest > 0.f ? 2 : 1); with_columns++) {
            std::vector<float> s(count, 1.f);
            for (size_t c = 0; c < count; c++) {
                // Channels that are almost never there stay small.
                const float kMost = tallest > 0.f ? 64.f : 4096.f;
                if (limits[c] <= 0.f) continue;
                s[c] = powf(widest / limits[c], power);
                if (with_columns && columns[c] > 0.f)
                    s[c] *= powf(columns[c] / tallest, 1.f - power);
                s[c] = std::max(1 / kMost, std::min(kMost, s[c]));
            }
            double cost = 0;
            for (Weights& w : *readers) cost += cost_of(w, limits, s);
            if (cost < least * 0.999) least = cost, best = s;
        }
    }
    return best;
}

}  // namespace

std::set<std::string> equalisable_blobs(const Model& model) {
    std::set<std::string> blobs;
    for (const Joint& joint : find_joints(model)) blobs.insert(joint.blob);
    return blobs;
}

int equalise(const Calibration& seen, bool free_only, const std::set<std::string>& left_alone,
             Model* model, int* done) {
    *done = 0;
    for (const Joint& joint : find_joints(*model)) {
        const auto stats = seen.blobs.find(joint.blob);
        Weights maker;
        if (stats == seen.blobs.end() || left_alone.count(joint.blob) ||
            !maker.read(&model->layers[joint.maker]))
            continue;
        const std::vector<float>& limits = stats->second.channel_limits;
        if ((int)limits.size() != maker.outputs) continue;
        std::vector<Weights> readers(joint.readers.size());
        bool fits = true;
        for (size_t i = 0; i < readers.size() && fits; i++) {
            fits = readers[i].read(&model->layers[joint.readers[i]]);
            const bool dense =
                model->layers[joint.readers[i]].is<Convolution>() && !readers[i].depthwise;
            fits = fits && !(dense && free_only) &&
                   (readers[i].depthwise ? readers[i].outputs : readers[i].inputs) == maker.outputs;
        }
        if (!fits) continue;
        const std::vector<float> factors = best_factors(limits, &readers);
        if (std::all_of(factors.begin(), factors.end(), [](float s) { return s == 1.f; })) continue;
        maker.scale_outputs(factors);
        maker.store();
        for (Weights& reader : readers) {
            reader.unscale_inputs(factors);
            reader.store();
        }
        ++*done;
    }
    return kOk;
}

}  // namespace quoll
