// Writes docs/operators/README.md from the operators' own definitions, or checks that it is up to
// date: operator_docs [--check] SOURCES FILE, SOURCES being src/layer.
#include <ctype.h>
#include <math.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "layer/common/schema.h"
#include "operator_sources.h"
#include "quoll/layer.h"

namespace {

using quoll::Mat;
using quoll::Range;

struct Row {
    int id;
    std::string name, type, def, range, doc;
};

std::string number(double value) {
    if (fabs(value) < 1e15 && value == floor(value)) return std::to_string((long long)value);
    return quoll::float_to_text((float)value);
}

std::string range_text(const std::string& low, const std::string& high) {
    if (!low.empty() && !high.empty()) return low + " to " + high;
    return !low.empty() ? "at least " + low : !high.empty() ? "at most " + high : "";
}

std::string range_text(Range range) {
    return range_text(range.low > -1e300 ? number(range.low) : "",
                      range.high < 1e300 ? number(range.high) : "");
}

// Collects the parameters with their defaults.
class Defaults : public quoll::ParamVisitor {
public:
    std::vector<Row> rows;

    void operator()(int id, const char* name, int& field, int def, const char* doc,
                    Range range) override {
        field = def;
        rows.push_back({id, name, "int", std::to_string(def), range_text(range), doc});
    }
    void operator()(int id, const char* name, float& field, float def, const char* doc,
                    Range range) override {
        field = def;
        rows.push_back({id, name, "float", number(def), range_text(range), doc});
    }
    void ints(int id, const char* name, Mat&, const char* doc, Range range) override {
        rows.push_back({id, name, "ints", "none", range_text(range), doc});
    }
    void floats(int id, const char* name, Mat&, const char* doc, Range range) override {
        rows.push_back({id, name, "floats", "none", range_text(range), doc});
    }
    void operator()(int id, const char* name, std::string&, const char* def,
                    const char* doc) override {
        rows.push_back({id, name, "string", *def ? def : "none", "", doc});
    }
};

// A default and the ends of a range may be earlier parameters: fills every int with a number of its
// own and looks which of them come back.
class References : public quoll::ParamVisitor {
public:
    std::map<int, std::string> reference_of;  // parameter id -> name of the parameter it follows
    std::map<int, std::string> range_of;      // parameter id -> range that names a parameter

    void operator()(int id, const char* name, int& field, int def, const char*,
                    Range range) override {
        const auto it = name_of_.find(def);
        if (it != name_of_.end()) reference_of[id] = it->second;
        const auto low = name_of_.find(range.low), high = name_of_.find(range.high);
        if (low != name_of_.end() || high != name_of_.end())
            range_of[id] = range_text(end_text(low, range.low), end_text(high, range.high));
        field = kFirst + (int)name_of_.size();
        name_of_[field] = name;
    }
    void operator()(int, const char*, float&, float, const char*, Range) override {}
    void ints(int, const char*, Mat&, const char*, Range) override {}
    void floats(int, const char*, Mat&, const char*, Range) override {}
    void operator()(int, const char*, std::string&, const char*, const char*) override {}

private:
    typedef std::map<double, std::string> Names;

    std::string end_text(Names::const_iterator named, double end) const {
        return named != name_of_.end() ? named->second : fabs(end) < 1e300 ? number(end) : "";
    }

    static const int kFirst = 770001;
    Names name_of_;
};

class Weights : public quoll::WeightVisitor {
public:
    std::string text;

    void operator()(bool, const char* name, Mat&, quoll::WeightSize, quoll::WeightKind kind,
                    const char* doc) override {
        text += std::string("| ") + name + " | " +
                (kind == quoll::WeightKind::kTagged ? "f32, f16, int8 or table (tagged)"
                 : kind == quoll::WeightKind::kInt8 ? "int8"
                                                    : "f32") +
                " | " + doc + " |\n";
    }
};

std::string params_of(const std::string& type) {
    const std::unique_ptr<quoll::Layer> plain(quoll::create_layer_reference(type.c_str()));
    const std::unique_ptr<quoll::Layer> marked(quoll::create_layer_reference(type.c_str()));
    Defaults defaults;
    plain->visit_params(defaults);
    References references;
    marked->visit_params(references);
    if (defaults.rows.empty()) return "";
    std::string text =
        "| id | parameter | type | default | values | meaning |\n|---|---|---|---|---|---|\n";
    for (const Row& r : defaults.rows) {
        const auto it = references.reference_of.find(r.id);
        const std::string def = it == references.reference_of.end() ? r.def : it->second;
        const auto named = references.range_of.find(r.id);
        const std::string range = named == references.range_of.end() ? r.range : named->second;
        text += "| " + std::to_string(r.id) + " | " + r.name + " | " + r.type + " | " + def +
                " | " + range + " | " + r.doc + " |\n";
    }
    return text + "\n";
}

// What the layer takes as it is; the Extractor converts the rest.
std::string properties_of(const quoll::Layer& layer, bool vectorized) {
    std::string text = vectorized ? "CPU: vector form and scalar reference" : "CPU: scalar";
    const bool f16 = layer.support_fp16_storage, bf16 = layer.support_bf16_storage;
    text += f16 && bf16 ? ". Takes f16 and bf16 as they are"
            : f16       ? ". Takes f16 as it is, bf16 widened"
            : bf16      ? ". Takes bf16 as it is, f16 widened"
                        : ". f16 and bf16 are widened";
    text += layer.support_batch ? "; a batch at once" : "; a batch item by item";
    if (layer.support_packing) text += "; any elempack";
    if (layer.support_inplace) text += "; in place";
    if (layer.support_zero_size) text += "; axes of size 0";
    if (layer.support_absent_inputs) text += "; inputs may be missing";
    return text + ".\n\n";
}

// Links to the headings by the alphabet, a line for each first letter.
std::string contents() {
    std::map<std::string, std::string> types;  // by heading's anchor
    for (const std::string& type : quoll::layer_types()) {
        std::string anchor = type;
        for (char& c : anchor) c = (char)tolower(c);
        types[anchor] = type;
    }
    std::string text;
    char letter = 0;
    for (const auto& entry : types) {
        text += entry.first[0] == letter ? " · " : letter ? "\n\n" : "";
        letter = entry.first[0];
        text += "[" + entry.second + "](#" + entry.first + ")";
    }
    return text + "\n\n";
}

std::string document(const OperatorSources& sources) {
    std::string text =
        "# Operators\n\nWritten by `operator_docs` from the definitions in `src/layer`; a test "
        "fails when this page is out of date.\nShapes are written w, h, d, c, the innermost axis "
        "first. Values are f32 unless another type is named; f16 and bf16 are storage types of "
        "f32 values,\ncomputed with in f32. Weights are listed in file order; some are there only "
        "when a parameter says so.\nSee also: [tensors as Mats](tensor.md), [MACE and NeuroPilot "
        "operators](mace-neuropilot.md).\n\n" +
        contents();
    for (const std::string& type : quoll::layer_types()) {
        const std::unique_ptr<quoll::Layer> layer(quoll::create_layer_reference(type.c_str()));
        const std::unique_ptr<quoll::Layer> fast(quoll::create_layer(type.c_str()));
        Weights weights;
        layer->visit_weights(weights);
        text += "## " + type + "\n\n" + sources.comments.at(type) + "\nType index " +
                std::to_string(layer->typeindex) + ". " +
                properties_of(*fast, sources.vectorized.count(type) > 0) + params_of(type);
        if (!weights.text.empty())
            text += "| weight | stored as | size |\n|---|---|---|\n" + weights.text + "\n";
    }
    return text;
}

}  // namespace

using namespace quoll;

static int run(const std::string& folder, const std::string& path, bool check, MessageLog* log) {
    OperatorSources sources;
    if (!read_operator_sources(folder.c_str(), &sources))
        return log->fail("operator_docs", folder + " cannot be read");
    const std::string text = document(sources);
    OutputFiles files;
    if (!check)
        return write_file(path, text, &files) || files.commit() ? log->fail("operator_docs", "")
                                                                : 0;
    std::vector<unsigned char> have;
    if (read_bytes(path, &have)) return log->fail("operator_docs", "");
    if (std::string(have.begin(), have.end()) == text) return 0;
    return log->fail("operator_docs",
                     path + " is out of date: run operator_docs " + folder + " " + path);
}

int main(int argc, char** argv) {
    std::string folder, path;
    bool check = false;
    CommandLine line("Writes the table of operators from their definitions.", "operator_docs");
    line.option("SOURCES", folder, "the folder src/layer").required();
    line.option("FILE", path, "the page to write").required();
    line.flag("--check", check, "compare with FILE instead: exit code 1 if it is out of date");
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions("operator_docs", [&] { return run(folder, path, check, &log); });
}
