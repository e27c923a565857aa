#include "quantize/overrides.h"

#include <math.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#if QUOLL_HAVE_YAML
#include <yaml-cpp/yaml.h>
#endif

#include "common/model_files.h"
#include "quantize/weight_kinds.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

typedef nlohmann::ordered_json Json;

// What is wrong, with its place: "activations[2].bitwidth: ...".
struct Wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};

#if QUOLL_HAVE_YAML
Json from_yaml(const YAML::Node& node) {
    Json json;
    if (node.IsMap()) {
        json = Json::object();
        for (const auto& entry : node)
            json[entry.first.as<std::string>()] = from_yaml(entry.second);
    } else if (node.IsSequence()) {
        json = Json::array();
        for (const auto& entry : node) json.push_back(from_yaml(entry));
    } else if (node.IsScalar()) {
        // A quoted scalar is text, whatever it looks like.
        const std::string text = node.Scalar();
        const Json parsed =
            node.Tag() == "!" ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
        json = parsed.is_discarded() || parsed.is_structured() ? Json(text) : parsed;
    }
    return json;
}
#endif

Json parse(const std::string& path, const std::string& text) {
    const bool yaml = ends_with(path, ".yml") || ends_with(path, ".yaml");
    if (!yaml) return Json::parse(text);
#if QUOLL_HAVE_YAML
    return from_yaml(YAML::Load(text));
#else
    throw Wrong("this program was built without yaml-cpp: use JSON");
#endif
}

// Every key is known, so that a misspelt one is no silence.
void check_keys(const Json& json, const std::string& place,
                std::initializer_list<const char*> keys) {
    if (!json.is_object()) throw Wrong(place + ": expected a mapping");
    for (const auto& entry : json.items()) {
        bool known = false;
        for (const char* key : keys) known |= entry.key() == key;
        if (!known) throw Wrong(place + ": unknown key '" + entry.key() + "'");
    }
}

double number_of(const Json& json, const std::string& place) {
    const Json& value = json.is_array() && json.size() == 1 ? json[0] : json;
    if (!value.is_number() || !std::isfinite(value.get<double>()))
        throw Wrong(place + ": expected a number");
    return value.get<double>();
}

std::string text_of(const Json& json, const std::string& place) {
    if (json.is_number_integer())
        return std::to_string(json.get<int64_t>());  // names may be numbers
    if (!json.is_string()) throw Wrong(place + ": expected a text");
    return json.get<std::string>();
}

void read_quantizer(const Json& json, const std::string& place, BlobOverride* blob) {
    check_keys(json, place, {"type", "settings"});
    if (!json.contains("type")) throw Wrong(place + ": type is missing");
    const std::string type = text_of(json["type"], place + ".type"), inner = place + ".settings";
    const Json settings = json.value("settings", Json::object());
    check_keys(settings, inner,
               {"ema_decay", "min_vals", "max_vals", "sources", "percentile", "enhance_ratio"});
    const auto number = [&](const char* key, double missing) {
        return settings.contains(key) ? number_of(settings[key], inner + "." + key) : missing;
    };
    ThresholdOptions& o = blob->method;
    o.ema_decay = number("ema_decay", o.ema_decay);
    o.percentile = number("percentile", o.percentile);
    o.enhance_ratio = number("enhance_ratio", o.enhance_ratio);
    if (o.ema_decay < 0 || o.ema_decay >= 1)
        throw Wrong(inner + ".ema_decay: expected a number from 0 to below 1");
    if (o.percentile < 50 || o.percentile > 100)
        throw Wrong(inner + ".percentile: expected a number from 50 to 100");
    blob->has_method = true;
    if (type == "LastValueQuantizer") {
        o.method = Method::kLast;
    } else if (type == "EMAQuantizer") {
        o.method = Method::kEma;
    } else if (type == "AllValuesQuantizer" || type == "UnionQuantizer") {
        o.method = Method::kMinmax;
    } else if (type == "ConstantQuantizer" || type == "constant") {
        const double low = number("min_vals", NAN), high = number("max_vals", NAN);
        if (!(low <= 0 && high >= 0))
            throw Wrong(inner + ": expected min_vals <= 0 and max_vals >= 0");
        blob->range.low = (float)low, blob->range.high = (float)high;
        blob->has_method = false;
    } else if (!parse_method(type, &o.method)) {
        throw Wrong(place + ".type: '" + type +
                    "', expected LastValueQuantizer, EMAQuantizer, AllValuesQuantizer, "
                    "ConstantQuantizer, UnionQuantizer or " +
                    method_names());
    }
    if (!settings.contains("sources")) return;
    if (!settings["sources"].is_array()) throw Wrong(inner + ".sources: expected a list");
    for (const Json& source : settings["sources"])
        blob->sources.push_back(text_of(source, inner + ".sources"));
}

void read_target(const Json& json, const std::string& place, bool weights, QuantizeOptions* o) {
    check_keys(json, place, {"target_name", "bitwidth", "quantizer"});
    if (!json.contains("target_name")) throw Wrong(place + ": target_name is missing");
    const std::string name = text_of(json["target_name"], place + ".target_name");
    double bits = 8;
    if (json.contains("bitwidth")) bits = number_of(json["bitwidth"], place + ".bitwidth");
    if (bits != floor(bits) || bits < 2 || bits > 16)
        throw Wrong(place + ".bitwidth: expected a whole number from 2 to 16");
    if (weights) {
        LayerOverride& layer = o->layers[name];
        if (layer.kind.empty() && bits > 8) layer.kind = "float";
        return;
    }
    BlobOverride& blob = o->blobs[name];
    if (json.contains("bitwidth")) blob.bits = (int)bits;
    if (json.contains("quantizer")) read_quantizer(json["quantizer"], place + ".quantizer", &blob);
}

void read_file(const Json& json, QuantizeOptions* o, bool* equalized) {
    check_keys(json, "the file", {"version", "quantizer_targets", "layers", "generator_settings"});
    if (json.contains("version") && number_of(json["version"], "version") != 1)
        throw Wrong("version: expected 1");
    const Json settings = json.value("generator_settings", Json::object());
    *equalized |= settings.is_object() && settings.value("equalized", Json(false)) == Json(true);
    const Json layers = json.value("layers", Json::object());
    if (!layers.is_object()) throw Wrong("layers: expected a mapping of names to kinds");
    for (const auto& layer : layers.items()) {
        const std::string kind = text_of(layer.value(), "layers." + layer.key());
        if (!is_weight_kind(kind))
            throw Wrong("layers." + layer.key() + ": '" + kind + "', expected " +
                        weight_kind_names());
        o->layers[layer.key()].kind = kind;
    }
    const Json targets = json.value("quantizer_targets", Json::object());
    check_keys(targets, "quantizer_targets", {"constant_weights", "activations"});
    for (const char* part : {"constant_weights", "activations"}) {
        const Json list = targets.value(part, Json::array());
        if (!list.is_array()) throw Wrong(std::string(part) + ": expected a list");
        for (size_t i = 0; i < list.size(); i++)
            read_target(list[i], std::string(part) + "[" + std::to_string(i) + "]", part[0] == 'c',
                        o);
    }
}

}  // namespace

int read_overrides(const std::string& path, QuantizeOptions* options, bool* equalized) {
    std::string text;
    QUOLL_RETURN_IF_ERROR(read_text(path, "JSON", &text));
    try {
        read_file(parse(path, text), options, equalized);
        return kOk;
    } catch (const std::exception& e) {
        QUOLL_LOGE("%s: %s", path.c_str(), e.what());
        return kError;
    }
}

std::string overrides_text(const std::vector<LayerChoice>& layers, bool equalized) {
    Json weights = Json::array(), activations = Json::array(), kinds = Json::object();
    std::map<std::string, bool> written;
    std::map<std::string, int> bits;
    for (const LayerChoice& layer : layers)
        bits[layer.blob] = std::max(bits[layer.blob], layer.bits);
    for (const LayerChoice& layer : layers) {
        kinds[layer.name] = layer.kind;
        if (!is_static_kind(layer.kind) || !layer.range.seen()) continue;
        weights.push_back({{"target_name", layer.name}, {"bitwidth", 8}});
        if (written[layer.blob]) continue;
        written[layer.blob] = true;
        activations.push_back(
            {{"target_name", layer.blob},
             {"bitwidth", bits[layer.blob]},
             {"quantizer",
              {{"type", "ConstantQuantizer"},
               {"settings", {{"min_vals", layer.range.low}, {"max_vals", layer.range.high}}}}}});
    }
    const Json json = {
        {"version", 1},
        {"quantizer_targets", {{"constant_weights", weights}, {"activations", activations}}},
        {"layers", kinds},
        {"generator_settings", {{"equalized", equalized}}}};
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace quoll
