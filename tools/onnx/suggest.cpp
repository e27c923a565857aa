#include "onnx/suggest.h"

#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <set>

namespace quoll {
namespace onnx_tool {

namespace {

// Numbers that are tried for an input.
const size_t kMostNumbers = 4;

// Numbers that the model compares a value with, subgraphs included.
void compared_with(const Graph& graph, const std::string& name, std::set<int64_t>* numbers) {
    std::map<std::string, const Tensor*> constants;
    for (const auto& t : graph.initializers) constants[t.first] = &t.second;
    for (const Node& n : graph.nodes)
        if (n.op == "Constant" && n.outputs.size() == 1 && n.attributes.count("value"))
            constants[n.outputs[0]] = &n.attributes.at("value").t;
    for (const Node& n : graph.nodes) {
        for (const auto& a : n.attributes)
            if (a.second.g) compared_with(*a.second.g, name, numbers);
        if (n.op != "Equal" || n.inputs.size() != 2) continue;
        for (int i = 0; i < 2; i++) {
            const auto found = constants.find(n.inputs[(size_t)(1 - i)]);
            if (n.inputs[(size_t)i] == name && found != constants.end() &&
                is_supported(found->second->type) && found->second->count() == 1)
                numbers->insert(found->second->int_at(0));
        }
    }
}

// An input of one whole number or truth; or, if `open`, a list that may be of one.
bool holds_a_number(const ValueInfo& v, bool open) {
    const bool whole = v.type == ElementType::kInt64 || v.type == ElementType::kInt32 ||
                       v.type == ElementType::kBool;
    return v.is_tensor && v.has_shape && whole &&
           (v.shape.empty() ||
            (v.shape.size() == 1 && (v.shape[0].value == 1 || (open && v.shape[0].value < 0))));
}

enum Filling { kBatch, kOnes, kUsual, kFillings };

// A size for an open axis: 1 for batches, 224 for the sides of pictures, 16 for sequences.
int64_t size_for(Filling filling, size_t axis, size_t rank) {
    if (filling == kOnes || axis == 0) return filling == kBatch && axis > 0 ? -1 : 1;
    if (filling == kBatch) return -1;
    return rank == 4 && axis >= 2 ? 224 : rank == 4 ? 3 : 16;
}

// False if nothing is open.
bool fill_sizes(const OnnxModel& model, Filling filling, OnnxOptions* options) {
    bool filled = false;
    for (const ValueInfo& v : model.graph.inputs) {
        if (model.graph.initializers.count(v.name) || options->constants.count(v.name) ||
            !v.is_tensor || !v.has_shape)
            continue;
        std::vector<int64_t> sizes;
        const auto given = options->shapes.find(v.name);
        bool own = false;
        for (size_t a = 0; a < v.shape.size(); a++) {
            int64_t size = v.shape[a].value;
            if (given != options->shapes.end() && given->second.size() == v.shape.size() &&
                given->second[a] >= 0)
                size = given->second[a];
            if (size < 0) {
                size = size_for(filling, a, v.shape.size());
                own = own || size >= 0;
            }
            sizes.push_back(size);
        }
        if (own) options->shapes[v.name] = sizes;
        filled = filled || own;
    }
    return filled;
}

// The options given, then those with numbers for the inputs that hold one.
std::vector<OnnxOptions> numbered(const OnnxModel& model, const OnnxOptions& given, bool open) {
    std::vector<OnnxOptions> with_numbers(1, given);
    for (const ValueInfo& v : model.graph.inputs) {
        if (!holds_a_number(v, open) || given.constants.count(v.name)) continue;
        std::set<int64_t> numbers;
        compared_with(model.graph, v.name, &numbers);
        if (numbers.empty()) numbers = {0, 1};
        const size_t before = with_numbers.size();
        size_t used = 0;
        for (auto n = numbers.rbegin(); n != numbers.rend() && used < kMostNumbers; ++n, used++) {
            for (size_t i = 0; i < before && with_numbers.size() < 64; i++) {
                with_numbers.push_back(with_numbers[i]);
                with_numbers.back().constants[v.name] = std::to_string(*n);
            }
        }
    }
    return with_numbers;
}

}  // namespace

std::vector<OnnxOptions> candidate_options(const OnnxModel& model, const OnnxOptions& given) {
    const std::vector<OnnxOptions> with_numbers = numbered(model, given, false);
    std::vector<OnnxOptions> all(with_numbers.begin() + 1, with_numbers.end());
    for (int filling = 0; filling < kFillings; filling++) {
        for (const OnnxOptions& one : with_numbers) {
            OnnxOptions sized = one;
            if (fill_sizes(model, (Filling)filling, &sized)) all.push_back(sized);
        }
    }
    // Lists of open length come last: most of them are data, not settings.
    const std::vector<OnnxOptions> with_lists = numbered(model, given, true);
    if (with_lists.size() > with_numbers.size())
        all.insert(all.end(), with_lists.begin() + 1, with_lists.end());
    return all;
}

std::string option_text(const OnnxOptions& given, const OnnxOptions& options) {
    std::string text;
    for (const auto& c : options.constants)
        if (!given.constants.count(c.first)) text += " --constant " + c.first + "=" + c.second;
    for (const auto& s : options.shapes) {
        const auto old = given.shapes.find(s.first);
        if (old != given.shapes.end() && old->second == s.second) continue;
        text += " --shape " + s.first + "=";
        for (size_t i = 0; i < s.second.size(); i++)
            text += (i ? "," : "") + std::to_string(s.second[i]);
    }
    return text.empty() ? text : text.substr(1);
}

bool read_numbers(const std::string& text, std::vector<double>* numbers) {
    numbers->clear();
    const char* at = text.c_str();
    while (*at) {
        char* end = nullptr;
        const double v = strtod(at, &end);
        if (end == at || (*end && *end != ',') || (*end && !end[1]) || !std::isfinite(v))
            return false;
        numbers->push_back(v);
        at = *end ? end + 1 : end;
    }
    return !numbers->empty();
}

}  // namespace onnx_tool
}  // namespace quoll
