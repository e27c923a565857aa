// Writes docs/operators.md from the operators' own definitions, or checks that it is up to date:
// operator_docs [--check] FILE.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "layer.h"
#include "layer/schema.h"

namespace {

using quoll::Mat;
using quoll::Range;

struct Row {
    int id;
    std::string name, type, def, range, doc;
};

std::string number(double value) {
    if (value == (double)(long long)value) return std::to_string((long long)value);
    return quoll::float_to_text((float)value);
}

std::string range_text(Range range) {
    const bool low = range.low > -1e300, high = range.high < 1e300;
    if (low && high) return number(range.low) + " to " + number(range.high);
    return low ? "at least " + number(range.low) : high ? "at most " + number(range.high) : "";
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

// A default may be an earlier parameter: fills every int with a number of its own and looks which
// of them come back as a default.
class References : public quoll::ParamVisitor {
public:
    std::map<int, std::string> reference_of;  // parameter id -> name of the parameter it follows

    void operator()(int id, const char* name, int& field, int def, const char*, Range) override {
        const auto it = name_of_.find(def);
        if (it != name_of_.end()) reference_of[id] = it->second;
        field = kFirst + (int)name_of_.size();
        name_of_[field] = name;
    }
    void operator()(int, const char*, float&, float, const char*, Range) override {}
    void ints(int, const char*, Mat&, const char*, Range) override {}
    void floats(int, const char*, Mat&, const char*, Range) override {}
    void operator()(int, const char*, std::string&, const char*, const char*) override {}

private:
    static const int kFirst = 770001;
    std::map<int, std::string> name_of_;
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
        text += "| " + std::to_string(r.id) + " | " + r.name + " | " + r.type + " | " + def +
                " | " + r.range + " | " + r.doc + " |\n";
    }
    return text + "\n";
}

std::string document() {
    const std::vector<std::string> types = quoll::layer_types();
    std::string text =
        "# Operators\n\nWritten by `operator_docs` from the definitions in `src/layer`; a test "
        "fails when this page is "
        "out of date.\nWeights are listed in file order; some are there only when a parameter says "
        "so.\n\n";
    for (const std::string& type : types) {
        const std::unique_ptr<quoll::Layer> layer(quoll::create_layer_reference(type.c_str()));
        Weights weights;
        layer->visit_weights(weights);
        text += "## " + type + "\n\nType index " + std::to_string(layer->typeindex) + ".\n\n" +
                params_of(type);
        if (!weights.text.empty())
            text += "| weight | stored as | size |\n|---|---|---|\n" + weights.text + "\n";
    }
    return text;
}

}  // namespace

int main(int argc, char** argv) {
    const bool check = argc == 3 && strcmp(argv[1], "--check") == 0;
    if (argc != 2 && !check) return fprintf(stderr, "usage: operator_docs [--check] FILE\n"), 2;
    const char* path = argv[argc - 1];
    const std::string text = document();
    if (!check) {
        std::ofstream(path) << text;
        return 0;
    }
    std::ifstream in(path);
    const std::string have((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (have == text) return 0;
    return fprintf(stderr, "%s is out of date: run operator_docs %s\n", path, path), 1;
}
