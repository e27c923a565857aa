#include "quantize/quantize.h"

#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/nn/convolution.h"
#include "quantize/targets.h"
#include "quantize/weight_kinds.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/log_mute.h"

namespace quoll {

BlobSizes known_sizes(const Model& model, const BlobSizes& given) {
    const LogMute mute;  // sizes that do not follow are not known, and that is all
    BlobSizes sizes;
    infer_blob_sizes(model, given, &sizes);
    return sizes;
}

namespace {

// For an int8 layer; rows 0 if its weights have no scales.
WeightGrid static_grid(const ModelLayer& layer, const WeightOptions& options, bool affine) {
    WeightGrid grid;
    const std::unique_ptr<Layer> op = layer.make_operator();
    const std::vector<float> scales = weight_scales(layer, options, affine);
    if (!op || scales.empty()) return grid;
    const Convolution* conv = as<Convolution>(op.get());
    grid.rows = conv ? conv->num_output : (int)scales.size();
    grid.groups = conv && conv->grouped ? conv->group : 1;
    grid.weight = float_weight(layer, "weight_data");
    grid.stretch = grid.width = grid.weight.w / grid.rows;
    for (int row = 0; row < grid.rows; row++)
        grid.scales.push_back(scales[(size_t)row * scales.size() / (size_t)grid.rows]);
    return grid;
}

class Quantizer {
public:
    Quantizer(const Calibration& calibration, const QuantizeOptions& options, Model* model)
        : calibration_(calibration),
          options_(options),
          model_(model),
          targets_(int8_targets(*model)),
          sizes_(known_sizes(*model, options.sizes)) {
        if (options.join_concat) joined_ = joined_sources(*model, targets_);
    }

    int run(std::vector<LayerChoice>* layers) {
        QUOLL_RETURN_IF_ERROR(check_overrides());
        for (const Int8Target& target : targets_) {
            LayerChoice choice;
            choice.layer = target.layer, choice.name = target.name;
            choice.type = model_->layers[target.layer].type;
            choice.blob = target.blob, choice.source = target.source;
            choice.kind = target.already ? "int8" : kind_of(target);
            if (target.already)
                choice.origin = "model";
            else if (choice.kind == "int8" && !target.in_ncnn)
                keep_float("ncnn has no int8 form of it (kind affine has)", &choice);
            else if (is_static_kind(choice.kind))
                QUOLL_RETURN_IF_ERROR(make_static(&choice));
            layers->push_back(choice);
        }
        return store_kinds(layers);
    }

private:
    // What is given for the layer has precedence over the bits of its input.
    std::string kind_of(const Int8Target& target) const {
        const auto layer = options_.layers.find(target.name);
        const bool said = layer != options_.layers.end() && !layer->second.kind.empty();
        const std::string kind = kind_of_layer(options_, target.name);
        const bool wide = is_static_kind(kind) && !said && bits_of(target.blob) > 8;
        return without_form(target.layer, wide ? kInt16Kind : kind);
    }
    // Sums of a few products in groups are no faster by halves: these are computed in float.
    std::string without_form(int index, const std::string& kind) const {
        if (kind != kInt16Kind) return kind;
        const std::unique_ptr<Layer> op = model_->layers[index].make_operator();
        const Convolution* conv = as<Convolution>(op.get());
        return conv && conv->grouped ? "weights8" : kind;
    }
    int bits_of(const std::string& blob) const {
        const auto said = options_.blobs.find(blob);
        return said == options_.blobs.end() ? 0 : said->second.bits;
    }

    // Names that the model does not have are mistakes of the file.
    int check_overrides() const {
        std::set<std::string> layers;
        for (const ModelLayer& layer : model_->layers) layers.insert(layer.name);
        for (const auto& layer : options_.layers) {
            if (layers.count(layer.first)) continue;
            QUOLL_LOGE("overrides: the model has no layer '%s'", layer.first.c_str());
            return kError;
        }
        for (const auto& blob : options_.blobs) {
            if (model_->producer(blob.first) >= 0) continue;
            QUOLL_LOGE("overrides: the model has no blob '%s'", blob.first.c_str());
            return kError;
        }
        return kOk;
    }

    void tell_float(const std::string& type, const std::string& name,
                    const std::string& why) const {
        if (!options_.trial)
            QUOLL_LOGW("[%s %s] stays in float: %s", type.c_str(), name.c_str(), why.c_str());
    }

    void keep_float(const std::string& why, LayerChoice* choice) const {
        choice->kind = "float", choice->why = why;
        tell_float(choice->type, choice->name, why);
    }

    int make_static(LayerChoice* choice) {
        ModelLayer& layer = model_->layers[choice->layer];
        find_range(choice);
        if (choice->why.empty()) QUOLL_RETURN_IF_ERROR(make_weights(choice, &layer));
        if (!choice->why.empty()) return keep_float(choice->why, choice), kOk;
        if (choice->kind == "affine") {
            choice->input_scale = 255.f / (choice->range.high - choice->range.low);
            return round_input_affine(choice->layer, choice->range, model_);
        }
        if (choice->kind == kInt16Kind) {
            const int said = bits_of(choice->blob);
            choice->bits = said > 8 ? said : 16;
            return round_input16(choice->range.magnitude(), choice->bits, &layer,
                                 &choice->input_scale);
        }
        choice->input_scale = 127.f / choice->range.magnitude();
        return round_input(choice->input_scale, &layer);
    }

    // Rounds them and corrects the bias, or says why not.
    int make_weights(LayerChoice* choice, ModelLayer* layer) const {
        const std::pair<std::string, std::string> key(choice->kind, choice->name);
        if (options_.made && options_.made->count(key)) {
            const MadeLayer& made = options_.made->at(key);
            *layer = made.layer, choice->weight_scales = made.scales;
            return kOk;
        }
        const bool by_channel = choice->kind == "affine";
        choice->weight_scales = weight_scales(*layer, options_.weights, by_channel);
        if (choice->weight_scales.empty())
            return choice->why = "its weights are no finite numbers", kOk;
        const ModelLayer before = *layer;
        QUOLL_RETURN_IF_ERROR(round_weights(choice->weight_scales, by_channel, layer));
        set_rounded(layer);
        correct(before, choice->blob, layer);
        if (options_.made) (*options_.made)[key] = {*layer, choice->weight_scales};
        return kOk;
    }

    void correct(const ModelLayer& before, const std::string& blob, ModelLayer* layer) const {
        const auto seen = calibration_.blobs.find(blob);
        if (options_.bias_correction && seen != calibration_.blobs.end())
            correct_bias(before, seen->second.channel_means(), layer);
    }

    // What reconstruct_weights made of it.
    void set_rounded(ModelLayer* layer) const {
        const auto better = options_.rounded.find(layer->name);
        const StoredWeight* now = layer->find_weight("weight_data");
        if (better == options_.rounded.end() ||
            better->second.values.size() != now->data.logical_shape().total())
            return;
        Mat values(Shape((int)better->second.values.size(), DType::s8), 1);
        if (values.empty()) return;
        memcpy(values.data, better->second.values.data(), better->second.values.size());
        layer->set_weight("weight_data", values);
    }

    void find_range(LayerChoice* choice) const {
        for (const std::string& blob : {choice->blob, choice->source}) {
            const auto said = options_.blobs.find(blob);
            if (said == options_.blobs.end() || !said->second.range.seen()) continue;
            choice->range = said->second.range, choice->origin = "override";
            return settle(choice);
        }
        for (const Int8Target& other : targets_) {
            const float scale = own_input_scale(model_->layers[other.layer]);
            // What comes from the same blob may be a part of its range alone: behind a ReLU.
            if (!other.already || scale <= 0.f ||
                !takes_values_of(*model_, choice->blob, other.blob))
                continue;
            choice->range.high = 127.f / scale, choice->range.low = -choice->range.high;
            choice->origin = "model";
            return settle(choice);
        }
        const ValueRange known = hard_range(*model_, choice->source);
        if (options_.hard_ranges && known.seen()) {
            choice->range = known, choice->origin = "known";
            return settle(choice);
        }
        measure(choice);
        if (known.seen() && known.magnitude() > 0.f &&
            known.magnitude() < choice->range.magnitude())
            choice->range = known, choice->origin = "known";
        settle(choice);
    }

    void measure(LayerChoice* choice) const {
        ThresholdOptions options = options_.thresholds;
        // With 16 bits there is nothing to gain by clipping.
        if (choice->kind == kInt16Kind) options.method = Method::kMinmax;
        std::vector<std::string> sources = {choice->source};
        for (const std::string& blob : {choice->blob, choice->source}) {
            const auto said = options_.blobs.find(blob);
            if (said == options_.blobs.end()) continue;
            if (said->second.has_method) options = said->second.method;
            for (const std::string& other : said->second.sources)
                sources.push_back(range_source(*model_, other));
        }
        const auto own = joined_.find(choice->source);
        for (const auto& other : joined_)
            if (own != joined_.end() && other.second == own->second) sources.push_back(other.first);
        choice->method = method_name(options.method), choice->origin = "measured";
        for (const std::string& source : sources) {
            const auto seen = calibration_.blobs.find(source);
            if (seen == calibration_.blobs.end()) continue;
            if (seen->second.not_finite > 0 && source == choice->source && !options_.trial)
                QUOLL_LOGW(
                    "[%s %s] its input '%s' had %llu values that are NaN or infinite, "
                    "which were left out",
                    choice->type.c_str(), choice->name.c_str(), source.c_str(),
                    (unsigned long long)seen->second.not_finite);
            const auto found = options_.searched.find(source);
            const bool eq = options.method == Method::kEq && found != options_.searched.end();
            const bool symmetric = choice->kind != "affine";
            choice->range.include(eq ? found->second
                                     : choose_range(seen->second, options, symmetric));
        }
    }

    void settle(LayerChoice* choice) const {
        const float most = choice->range.magnitude();
        // Zero points stand for 0, and are integers.
        if (choice->kind == "affine" && choice->range.seen())
            choice->range.low = std::min(choice->range.low, 0.f),
            choice->range.high = std::max(choice->range.high, 0.f);
        const auto seen = calibration_.blobs.find(choice->source);
        const bool reached = seen != calibration_.blobs.end() && seen->second.not_finite > 0;
        if (!choice->range.seen() && reached)
            choice->why = "all values of its input '" + choice->blob + "' were NaN or infinite";
        else if (!choice->range.seen())
            choice->why = "no data reached its input '" + choice->blob + "'";
        else if (!(most > 0.f))
            choice->why = "its input '" + choice->blob + "' was always 0";
        else if (!std::isfinite(127.f / most))
            choice->why = "its input '" + choice->blob + "' is too small to have a scale";
    }

    // Other kinds of weights; layers that int8_targets does not know may have them too.
    int store_kinds(std::vector<LayerChoice>* layers) {
        for (size_t i = 0; i < model_->layers.size(); i++) {
            ModelLayer& layer = model_->layers[i];
            const auto listed = std::find_if(layers->begin(), layers->end(),
                                             [&](const auto& c) { return c.layer == (int)i; });
            const bool known = listed != layers->end();
            std::string kind = known ? listed->kind : kind_of_layer(options_, layer.name);
            if (!known && kind == kInt16Kind) kind = "weights8";
            if (kind == "float" || is_static_kind(kind)) continue;
            std::string why;
            const auto size = sizes_.find(layer.inputs.empty() ? "" : layer.inputs[0]);
            const auto better = options_.rounded.find(layer.name);
            const ModelLayer before = kind == "weights8" ? layer : ModelLayer();
            QUOLL_RETURN_IF_ERROR(store_weight_kind(
                kind, size == sizes_.end() ? Shape() : size->second,
                better == options_.rounded.end() ? nullptr : &better->second, &layer, &why));
            const bool asked = options_.layers.count(layer.name) != 0;
            if (kind == "weights8" && why.empty() && known) correct(before, listed->blob, &layer);
            if (!why.empty() && (known || asked)) tell_float(layer.type, layer.name, why);
            if (known)
                listed->kind = why.empty() ? kind : "float", listed->why = why;
            else if (why.empty())
                layers->push_back(other_choice((int)i, layer, kind));
        }
        return kOk;
    }
    static LayerChoice other_choice(int index, const ModelLayer& layer, const std::string& kind) {
        LayerChoice choice;
        choice.layer = index, choice.name = layer.name, choice.type = layer.type;
        choice.blob = choice.source = layer.inputs.empty() ? "" : layer.inputs[0];
        choice.kind = kind;
        return choice;
    }

    const Calibration& calibration_;
    const QuantizeOptions& options_;
    Model* const model_;
    const std::vector<Int8Target> targets_;
    const BlobSizes sizes_;
    std::map<std::string, std::string> joined_;
};

}  // namespace

std::string kind_of_layer(const QuantizeOptions& options, const std::string& layer) {
    const auto said = options.layers.find(layer);
    return said == options.layers.end() || said->second.kind.empty() ? options.kind
                                                                     : said->second.kind;
}

std::set<std::string> blobs_to_watch(const Model& model) {
    std::set<std::string> blobs;
    for (const Int8Target& target : int8_targets(model)) {
        blobs.insert(target.blob);
        blobs.insert(target.source);
    }
    return blobs;
}

std::map<int, WeightGrid> weight_grids(const Model& model, const QuantizeOptions& options) {
    std::map<int, WeightGrid> grids;
    for (const Int8Target& target : int8_targets(model)) {
        const std::string kind = kind_of_layer(options, target.name);
        if (target.already || !is_static_kind(kind)) continue;
        WeightGrid grid =
            static_grid(model.layers[target.layer], options.weights, kind == "affine");
        if (grid.rows > 0) grids[target.layer] = grid;
    }
    const BlobSizes sizes = known_sizes(model, options.sizes);
    for (size_t i = 0; i < model.layers.size(); i++) {
        const ModelLayer& layer = model.layers[i];
        const auto size = sizes.find(layer.inputs.empty() ? "" : layer.inputs[0]);
        WeightGrid grid;
        if (size != sizes.end() &&
            block_grid(kind_of_layer(options, layer.name), size->second, layer, &grid)) {
            if (!options.input_factors) grid.fit = nullptr;
            grids[(int)i] = grid;
        }
    }
    return grids;
}

int quantize_model(const Calibration& calibration, const QuantizeOptions& options, Model* model,
                   std::vector<LayerChoice>* layers) {
    return Quantizer(calibration, options, model).run(layers);
}

ScaleTable table_of(const std::vector<LayerChoice>& layers) {
    ScaleTable table;
    for (const LayerChoice& choice : layers) {
        if (choice.kind != "int8" || choice.weight_scales.empty()) continue;
        table.order.push_back(choice.name);
        table.weights[choice.name] = choice.weight_scales;
        table.inputs[choice.name] = {choice.input_scale};
    }
    return table;
}

}  // namespace quoll
