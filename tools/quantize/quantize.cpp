#include "quantize/quantize.h"

#include <math.h>

#include <algorithm>

#include "quantize/targets.h"
#include "quantize/weight_kinds.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

class Quantizer {
public:
    Quantizer(const Calibration& calibration, const QuantizeOptions& options, Model* model)
        : calibration_(calibration),
          options_(options),
          model_(model),
          targets_(int8_targets(*model)) {
        const LogMute mute;  // sizes that do not follow are not known, and that is all
        infer_blob_sizes(*model, options.sizes, &sizes_);
        if (options.join_concat) joined_ = joined_sources(*model, targets_);
    }

    int run(std::vector<LayerChoice>* layers) {
        QUOLL_RETURN_IF_ERROR(check_overrides());
        for (const Int8Target& target : targets_) {
            LayerChoice choice;
            choice.layer = target.layer, choice.name = target.name;
            choice.type = model_->layers[target.layer].type;
            choice.blob = target.blob, choice.source = target.source;
            choice.kind = target.already ? "int8" : kind_of(target.name);
            if (target.already)
                choice.origin = "model";
            else if (choice.kind == "int8")
                QUOLL_RETURN_IF_ERROR(make_static(&choice));
            layers->push_back(choice);
        }
        return store_kinds(layers);
    }

private:
    std::string kind_of(const std::string& layer) const {
        const auto said = options_.layers.find(layer);
        return said == options_.layers.end() || said->second.kind.empty() ? options_.kind
                                                                          : said->second.kind;
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

    int make_static(LayerChoice* choice) {
        ModelLayer& layer = model_->layers[choice->layer];
        find_range(choice);
        const auto said = options_.blobs.find(choice->blob);
        if (said != options_.blobs.end() && said->second.in_float)
            choice->why = "more than 8 bits are asked for its input '" + choice->blob + "'";
        choice->weight_scales = weight_scales(layer, options_.weights);
        if (choice->weight_scales.empty()) choice->why = "its weights are no finite numbers";
        if (!choice->why.empty()) {
            choice->kind = "float";
            QUOLL_LOGW("[%s %s] stays in float: %s", choice->type.c_str(), choice->name.c_str(),
                       choice->why.c_str());
            return kOk;
        }
        choice->input_scale = 127.f / choice->range.magnitude();
        const ModelLayer before = layer;
        QUOLL_RETURN_IF_ERROR(make_int8(&layer, choice->weight_scales, choice->input_scale));
        const auto seen = calibration_.blobs.find(choice->blob);
        if (options_.bias_correction && seen != calibration_.blobs.end())
            correct_bias(before, seen->second.channel_means(), &layer);
        return kOk;
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
            if (!other.already || other.source != choice->source || scale <= 0.f) continue;
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
            if (seen->second.not_finite > 0 && source == choice->source)
                QUOLL_LOGW(
                    "[%s %s] its input '%s' had %llu values that are NaN or infinite, "
                    "which were left out",
                    choice->type.c_str(), choice->name.c_str(), source.c_str(),
                    (unsigned long long)seen->second.not_finite);
            const auto found = options_.searched.find(source);
            const bool eq = options.method == Method::kEq && found != options_.searched.end();
            choice->range.include(eq ? found->second : choose_range(seen->second, options, true));
        }
    }

    void settle(LayerChoice* choice) const {
        const float most = choice->range.magnitude();
        if (!choice->range.seen())
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
            const std::string kind = known ? listed->kind : kind_of(layer.name);
            if (kind == "float" || kind == "int8") continue;
            std::string why;
            const auto size = sizes_.find(layer.inputs.empty() ? "" : layer.inputs[0]);
            QUOLL_RETURN_IF_ERROR(store_weight_kind(
                kind, size == sizes_.end() ? Shape() : size->second, &layer, &why));
            const bool asked = options_.layers.count(layer.name) != 0;
            if (!why.empty() && (known || asked))
                QUOLL_LOGW("[%s %s] stays in float: %s", layer.type.c_str(), layer.name.c_str(),
                           why.c_str());
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
    std::map<std::string, std::string> joined_;
    BlobSizes sizes_;
};

}  // namespace

std::set<std::string> blobs_to_watch(const Model& model) {
    std::set<std::string> blobs;
    for (const Int8Target& target : int8_targets(model)) {
        blobs.insert(target.blob);
        blobs.insert(target.source);
    }
    return blobs;
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
