#include "profile.h"

#include <algorithm>
#include <chrono>

#include "common/layer_fields.h"
#include "common/run_options.h"
#include "graph/analysis.h"

namespace quoll {

using nlohmann::json;

double now_ms() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(time).count();
}

LayerProfile::LayerProfile(const Net& net) : net_(net) {}

void LayerProfile::begin_run() { run_begin_ = now_ms(); }
void LayerProfile::end_run() { runs_.push_back(now_ms() - run_begin_); }
void LayerProfile::before(const Layer&) { layer_begin_ = now_ms(); }

void LayerProfile::after(const Layer& layer, const std::vector<Mat>& outputs) {
    const double end = now_ms();
    const auto found = record_of_.emplace(&layer, records_.size());
    if (found.second) {
        records_.push_back({&layer, {}, {}, {}, layouts_.why(layer, net_)});
        layouts_.add(layer, outputs);
        for (size_t i = 0; i < outputs.size(); i++) {
            records_.back().outputs.push_back(outputs[i].logical_shape());
            shapes_[layer.tops[i]] = outputs[i].logical_shape();
        }
    }
    Record& record = records_[found.first->second];
    record.starts.push_back(layer_begin_ - run_begin_);
    record.times.push_back(end - layer_begin_);
}

Shape LayerProfile::input_of(const Layer& layer) const {
    if (layer.bottoms.empty()) return Shape();
    const auto made = shapes_.find(layer.bottoms[0]);
    return made == shapes_.end() ? input_shape(net_, layer.bottoms[0]) : made->second;
}

// "3x3" for an axis pair of the layer's fields, "" where it has none.
static std::string pair_text(Layer* layer, const char* h, const char* w) {
    const int missing = -1000000;
    const int x = int_field(layer, w, missing), y = int_field(layer, h, x);
    return x == missing ? "" : std::to_string(y) + "x" + std::to_string(x);
}

json LayerProfile::describe(const Record& record) const {
    Layer* layer = const_cast<Layer*>(record.layer);  // visiting changes nothing
    const Shape input = input_of(*layer);
    const std::string kernel = pair_text(layer, "kernel_h", "kernel_w");
    const int outputs = int_field(layer, "num_output"), group = int_field(layer, "group", 1);
    std::string filter = kernel;
    if (outputs && input.dims)
        filter = std::to_string(outputs) + "x" +
                 std::to_string(kernel.empty() ? (int)input.total()
                                               : input.size(0) / std::max(group, 1)) +
                 (kernel.empty() ? "" : "x") + kernel;
    return {{"type", layer->type},
            {"name", layer->name},
            {"macs", std::max<int64_t>(layer->macs({input}, record.outputs), 0)},
            {"stride", pair_text(layer, "stride_h", "stride_w")},
            {"pad", pair_text(layer, "pad_top", "pad_left")},
            {"dilation", pair_text(layer, "dilation_h", "dilation_w")},
            {"filter", filter},
            {"output", record.outputs.empty() ? "" : axes_text(record.outputs[0])},
            {"cliff", record.cliff},
            {"start_ms", record.starts},
            {"ms", record.times}};
}

json LayerProfile::to_json() const {
    json layers = json::array();
    for (const Record& record : records_) layers.push_back(describe(record));
    return {{"runs_ms", runs_}, {"layers", layers}};
}

}  // namespace quoll
