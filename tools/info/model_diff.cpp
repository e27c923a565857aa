#include "info/model_diff.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <map>

#include "info/report.h"

namespace quoll {

namespace {

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text.empty() ? "(none)" : text;
}

std::string layer_line(const ModelLayer& layer) {
    return layer.type + " " + layer.name + ": " + joined(layer.inputs) + " -> " +
           joined(layer.outputs) + " " + params_text(layer);
}

std::string format_of(const StoredWeight& w) {
    return w.data.dtype == DType::u8 ? "table" : dtype_name(w.data.dtype);
}

bool same_bits(const Mat& a, const Mat& b) {
    return a.dtype == b.dtype && a.total() == b.total() &&
           (a.empty() || memcmp(a.data, b.data, a.total() * a.elemsize) == 0);
}

// "" if they are the same, bits and storage.
std::string weight_difference(const StoredWeight& a, const StoredWeight& b) {
    const size_t count = a.data.logical_shape().total(), other = b.data.logical_shape().total();
    if (count != other) return "values " + std::to_string(count) + " -> " + std::to_string(other);
    if (same_bits(a.data, b.data) && same_bits(a.table, b.table)) return "";
    std::string text;
    if (format_of(a) != format_of(b)) text = format_of(a) + " -> " + format_of(b) + ", ";
    const Mat x = a.widened(), y = b.widened();
    if (x.dtype != DType::f32 || y.dtype != DType::f32) return text + "other values";
    double most = 0, low = x[0], high = x[0];
    size_t differ = 0;
    for (size_t i = 0; i < count; i++) {
        const double d = fabs((double)x[i] - y[i]);
        differ += d != 0 || x[i] != x[i];
        most = std::max(most, d);
        low = std::min(low, (double)x[i]), high = std::max(high, (double)x[i]);
    }
    char numbers[128];
    snprintf(numbers, sizeof(numbers), "%zu of %zu values differ, by at most %.3g (range %.3g)",
             differ, count, most, high - low);
    return text + numbers;
}

void add_weights(const ModelLayer& a, const ModelLayer& b, std::vector<std::string>* changes) {
    for (const ModelWeight& w : a.weights) {
        const StoredWeight* other = b.find_weight(w.name.c_str());
        const std::string what = other ? weight_difference(w.stored, *other) : "is gone";
        if (!what.empty()) changes->push_back(w.name + " " + what);
    }
    for (const ModelWeight& w : b.weights)
        if (!a.find_weight(w.name.c_str())) changes->push_back(w.name + " is new");
}

std::vector<std::string> changes_of(const ModelLayer& a, const ModelLayer& b, bool weights) {
    std::vector<std::string> changes;
    const auto compare = [&](const char* what, const std::string& x, const std::string& y) {
        if (x != y) changes.push_back(std::string(what) + " " + x + " -> " + y);
    };
    compare("type", a.type, b.type);
    compare("inputs", joined(a.inputs), joined(b.inputs));
    compare("outputs", joined(a.outputs), joined(b.outputs));
    compare("params", params_text(a), params_text(b));
    if (weights) add_weights(a, b, &changes);
    return changes;
}

}  // namespace

std::string diff_models(const Model& a, const Model& b, bool weights) {
    std::map<std::string, const ModelLayer*> others, ours;
    for (const ModelLayer& layer : a.layers) ours[layer.name] = &layer;
    for (const ModelLayer& layer : b.layers) others[layer.name] = &layer;
    std::string text;
    for (const ModelLayer& layer : a.layers) {
        const auto other = others.find(layer.name);
        if (other == others.end()) {
            text += "- " + layer_line(layer) + "\n";
            continue;
        }
        const std::vector<std::string> changes = changes_of(layer, *other->second, weights);
        for (const std::string& change : changes)
            text += "~ " + layer.type + " " + layer.name + ": " + change + "\n";
    }
    for (const ModelLayer& layer : b.layers)
        if (!ours.count(layer.name)) text += "+ " + layer_line(layer) + "\n";
    std::vector<std::string> x, y;
    for (const ModelLayer& layer : a.layers)
        if (others.count(layer.name)) x.push_back(layer.name);
    for (const ModelLayer& layer : b.layers)
        if (ours.count(layer.name)) y.push_back(layer.name);
    if (x != y) text += "~ the layers that both have come in another order\n";
    return text;
}

}  // namespace quoll
