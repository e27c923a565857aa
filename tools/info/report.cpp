#include "info/report.h"

#include <stdlib.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "layer/common/schema.h"
#include "quoll/datawriter.h"

namespace quoll {

std::string params_text(const ModelLayer& layer) {
    std::vector<unsigned char> bytes;
    if (layer.params.save_param(DataWriterToMemory(&bytes))) return "";
    const size_t skip = bytes.empty() ? 0 : 1;
    return std::string(bytes.begin() + skip, bytes.end());
}

// The schema's names by id.
class ParamNames : public ParamVisitor {
public:
    std::map<int, std::string> names;

    void operator()(int id, const char* name, int&, int, const char*, Range) override {
        names[id] = name;
    }
    void operator()(int id, const char* name, float&, float, const char*, Range) override {
        names[id] = name;
    }
    void ints(int id, const char* name, Mat&, const char*, Range) override { names[id] = name; }
    void floats(int id, const char* name, Mat&, const char*, Range) override { names[id] = name; }
    void operator()(int id, const char* name, std::string&, const char*, const char*) override {
        names[id] = name;
    }
};

std::vector<std::pair<std::string, std::string>> named_params(const ModelLayer& layer) {
    ParamNames known;
    const std::unique_ptr<Layer> plain(create_layer_reference(layer.type.c_str()));
    if (plain) plain->visit_params(known);
    std::vector<std::pair<std::string, std::string>> fields;
    std::istringstream text(params_text(layer));
    for (std::string word; text >> word;) {
        const size_t equals = word.find('=');
        int id = atoi(word.c_str());
        std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if (id <= -23300) {  // an array, which begins with its length
            id = -23300 - id;
            const size_t comma = value.find(',');
            value = comma == std::string::npos ? "" : value.substr(comma + 1);
        }
        const auto name = known.names.find(id);
        fields.emplace_back(name == known.names.end() ? std::to_string(id) : name->second, value);
    }
    return fields;
}

static std::string weight_text(const WeightFacts& w) {
    std::string text = w.name + " " + grouped(w.count);
    if (!w.stored) return text;
    return text + (w.dtype == DType::u8 ? " table" : std::string(" ") + dtype_name(w.dtype));
}

static std::string macs_text(const LayerFacts& facts) {
    return facts.cost.macs < 0 ? "?" : grouped(facts.cost.macs);
}

std::string layer_table(const ModelReport& report) {
    std::string text;
    char line[320];
    snprintf(line, sizeof(line), "%-24s %-24s %16s %14s  %s\n", "type", "name", "macs",
             "parameters", "inputs -> outputs; weights");
    text += line;
    for (size_t i = 0; i < report.model->layers.size(); i++) {
        const ModelLayer& layer = report.model->layers[i];
        const LayerFacts& facts = report.facts.layers[i];
        snprintf(line, sizeof(line), "%-24.80s %-24.80s %16s %14s  ", layer.type.c_str(),
                 layer.name.c_str(), macs_text(facts).c_str(), grouped(facts.parameters()).c_str());
        text += line;
        for (size_t b = 0; b < layer.inputs.size(); b++)
            text += (b ? ", " : "") + layer.inputs[b] + " " + size_text(facts.inputs[b]);
        text += layer.inputs.empty() ? "-> " : " -> ";
        for (size_t b = 0; b < layer.outputs.size(); b++)
            text += (b ? ", " : "") + layer.outputs[b] + " " + size_text(facts.outputs[b]);
        for (const WeightFacts& w : facts.weights) text += "; " + weight_text(w);
        text += "\n";
    }
    return text;
}

std::string io_table(const ModelReport& report) {
    std::string text;
    for (const bool input : {true, false}) {
        for (const std::string& blob :
             input ? input_blobs(*report.model) : output_blobs(*report.model)) {
            const auto size = report.facts.sizes.find(blob);
            const Shape shape = size == report.facts.sizes.end() ? Shape() : size->second;
            const ModelLayer& from = report.model->layers[report.model->producer(blob)];
            text += (input ? "input  " : "output ") + blob + " " + size_text(shape);
            if (shape.dims) text += std::string(" ") + dtype_name(shape.dtype);
            text += " from " + from.type + " " + from.name + "\n";
        }
    }
    return text;
}

// Bytes of weights by their type.
static std::map<std::string, int64_t> bytes_by_type(const ModelFacts& facts) {
    std::map<std::string, int64_t> bytes;
    for (const LayerFacts& layer : facts.layers)
        for (const WeightFacts& w : layer.weights)
            if (w.stored)
                bytes[w.dtype == DType::u8 ? "table" : dtype_name(w.dtype)] += w.file_bytes;
    return bytes;
}

std::string summary(const ModelReport& report) {
    const ModelFacts& f = report.facts;
    const auto row = [](const char* what, const std::string& value) {
        char line[160];
        snprintf(line, sizeof(line), "%-24s%20s", what, value.c_str());
        return std::string(line);
    };
    std::string text = row("layers", grouped((int64_t)report.model->layers.size())) + "\n";
    text += row("blobs", grouped((int64_t)report.model->blob_names().size())) + "\n";
    text += row("multiply-accumulates", grouped(f.macs)) +
            (f.macs_complete ? "\n" : "  (sizes are missing: at least)\n");
    text += row("parameters", grouped(f.parameters)) + "\n";
    if (report.has_weights) {
        text += row("weight bytes", grouped(f.weight_bytes)) + "\n";
        for (const auto& type : bytes_by_type(f))
            text += row(("  in " + type.first).c_str(), grouped(type.second)) + "\n";
    }
    const std::string missing = f.memory.complete ? "\n" : "  (sizes are missing: at least)\n";
    text += row("bytes of all blobs", grouped(f.memory.sum)) + missing;
    text += row("most bytes at a time", grouped(f.memory.peak)) + missing;
    if (f.memory.peak_layer >= 0) {
        const ModelLayer& peak = report.model->layers[f.memory.peak_layer];
        text += row("  while running", peak.type + " " + peak.name) + "\n";
    }
    return text;
}

using nlohmann::ordered_json;

static ordered_json json_size(const Shape& shape) {
    if (shape.dims == 0) return nullptr;
    ordered_json axes = ordered_json::array();
    for (int i = 0; i < shape.dims; i++) axes.push_back(shape.size(i));
    return axes;
}

static ordered_json json_blobs(const std::vector<std::string>& names,
                               const std::vector<Shape>& shapes) {
    ordered_json blobs = ordered_json::array();
    for (size_t i = 0; i < names.size(); i++) {
        ordered_json blob = {{"name", names[i]}, {"shape", json_size(shapes[i])}};
        if (shapes[i].dims) blob["dtype"] = dtype_name(shapes[i].dtype);
        blobs.push_back(blob);
    }
    return blobs;
}

static ordered_json json_layer(const ModelLayer& layer, const LayerFacts& facts) {
    ordered_json j = {{"type", layer.type}, {"name", layer.name}};
    j["inputs"] = json_blobs(layer.inputs, facts.inputs);
    j["outputs"] = json_blobs(layer.outputs, facts.outputs);
    j["params"] = params_text(layer);
    j["fields"] = ordered_json::object();
    for (const auto& field : named_params(layer)) j["fields"][field.first] = field.second;
    const Cost& cost = facts.cost;
    j["macs"] = cost.macs < 0 ? ordered_json(nullptr) : ordered_json(cost.macs);
    j["bytes"] = cost.bytes < 0 ? ordered_json(nullptr) : ordered_json(cost.bytes);
    j["weights"] = ordered_json::array();
    for (const WeightFacts& w : facts.weights) {
        ordered_json weight = {{"name", w.name}, {"count", w.count}};
        if (w.stored) weight["dtype"] = w.dtype == DType::u8 ? "table" : dtype_name(w.dtype);
        if (w.stored) weight["bytes"] = w.file_bytes;
        j["weights"].push_back(weight);
    }
    return j;
}

static ordered_json json_plan(const LayerReport& p) {
    return {{"name", p.name}, {"type", p.type},     {"target", p.backend},  {"kernels", p.kernels},
            {"isa", p.isa},   {"inputs", p.inputs}, {"outputs", p.outputs}, {"notes", p.notes}};
}

std::string json_text(const ModelReport& report) {
    const ModelFacts& f = report.facts;
    ordered_json j = {{"model", report.path}};
    const auto io = [&](const std::vector<std::string>& blobs) {
        std::vector<Shape> shapes;
        for (const std::string& blob : blobs) {
            const auto size = f.sizes.find(blob);
            shapes.push_back(size == f.sizes.end() ? Shape() : size->second);
        }
        return json_blobs(blobs, shapes);
    };
    j["inputs"] = io(input_blobs(*report.model));
    j["outputs"] = io(output_blobs(*report.model));
    j["layer_count"] = report.model->layers.size();
    j["blob_count"] = report.model->blob_names().size();
    j["macs"] = f.macs, j["macs_complete"] = f.macs_complete;
    j["parameters"] = f.parameters;
    if (report.has_weights) j["weight_bytes"] = f.weight_bytes;
    if (report.has_weights) j["weight_bytes_by_type"] = bytes_by_type(f);
    j["memory"] = {{"sum_bytes", f.memory.sum},
                   {"peak_bytes", f.memory.peak},
                   {"complete", f.memory.complete}};
    if (f.memory.peak_layer >= 0)
        j["memory"]["peak_layer"] = report.model->layers[f.memory.peak_layer].name;
    j["layers"] = ordered_json::array();
    for (size_t i = 0; i < report.model->layers.size(); i++)
        j["layers"].push_back(json_layer(report.model->layers[i], f.layers[i]));
    for (const LayerReport& p : report.plan) j["exec_plan"].push_back(json_plan(p));
    if (report.memory.segments)
        j["planned_memory"] = {{"arena_bytes", report.memory.arena},
                               {"most_alive_bytes", report.memory.alive},
                               {"all_blobs_bytes", report.memory.all},
                               {"own_bytes", report.memory.own},
                               {"segments", report.memory.segments}};
    return j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace quoll
