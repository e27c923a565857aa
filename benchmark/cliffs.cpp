#include "cliffs.h"

#include <stdio.h>

#include <algorithm>

#include "common/layer_fields.h"
#include "layer/common/registry.h"

namespace quoll {

using nlohmann::json;

void BlobLayouts::add(const Layer& layer, const std::vector<Mat>& outputs) {
    for (size_t i = 0; i < outputs.size() && i < layer.tops.size(); i++)
        layouts_[layer.tops[i]] = {outputs[i].elempack, outputs[i].dtype};
}

std::string BlobLayouts::why(const Layer& layer, const Net& net) const {
    const char* family = layer_kernel_family(layer.type.c_str());
    const bool known = layer.typeindex >= 0;           // not one of the application
    Layer* const fields = const_cast<Layer*>(&layer);  // visiting changes nothing
    if (known && (!family || net.opt.use_reference_layers)) return "scalar";
    if (known && int_field(fields, "dynamic_weight") != 0) return "scalar: weights are inputs";
    for (int blob : layer.bottoms) {
        const auto found = layouts_.find(blob);
        if (found == layouts_.end()) continue;
        if (found->second.elempack != 1 && !layer.support_packing) return "unpacks";
        if ((found->second.dtype == DType::f16 && !layer.support_fp16_storage) ||
            (found->second.dtype == DType::bf16 && !layer.support_bf16_storage))
            return "widens";
    }
    return "";
}

namespace {

struct Cliff {
    std::string type, name, why, output;
    double ms;
};

double median(std::vector<double> times) {
    if (times.empty()) return 0;
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// The cliffs of a row, slowest first; *total: the time of all layers.
std::vector<Cliff> cliffs_of(const json& row, double* total) {
    std::vector<Cliff> found;
    *total = 0;
    for (const json& layer : row["profile"]["layers"]) {
        const double ms = median(layer["ms"].get<std::vector<double>>());
        *total += ms;
        if (layer["cliff"] != "")
            found.push_back({layer["type"], layer["name"], layer["cliff"], layer["output"], ms});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Cliff& a, const Cliff& b) { return a.ms > b.ms; });
    return found;
}

}  // namespace

double cliff_share(const json& row) {
    double total, sum = 0;
    for (const Cliff& c : cliffs_of(row, &total)) sum += c.ms;
    return total > 0 ? sum / total : 0;
}

std::string cliff_table(const json& row) {
    const double least = 0.001;  // what is below this share is not listed
    double total;
    const std::vector<Cliff> cliffs = cliffs_of(row, &total);
    char line[512];
    snprintf(line, sizeof(line), "cliffs: %.1f %% of %.3f ms, %zu of %zu layers\n",
             100 * cliff_share(row), total, cliffs.size(), row["profile"]["layers"].size());
    std::string text = line;
    for (const Cliff& c : cliffs) {
        if (c.ms < least * total) break;
        snprintf(line, sizeof(line), "%8.1f %%  %8.3f ms  %-20s %-14s %-16s %.80s\n",
                 100 * c.ms / total, c.ms, c.type.c_str(), c.why.c_str(), c.output.c_str(),
                 c.name.c_str());
        text += line;
    }
    return text;
}

}  // namespace quoll
