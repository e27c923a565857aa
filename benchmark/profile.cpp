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

namespace {

typedef std::vector<double> Times;

void add(const Times& more, Times* sum) {
    for (size_t i = 0; i < sum->size(); i++) (*sum)[i] += more[i];
}

// The dispatches of a step, and in *ms their times together.
json dispatches_of(const RegionProfile& region, int step, Times* ms) {
    json found = json::array();
    for (const RegionProfile::Dispatch& d : region.dispatches) {
        if (d.step != step) continue;
        found.push_back({{"shader", d.shader}, {"groups", d.groups}, {"ms", d.ms}});
        add(d.ms, ms);
    }
    return found;
}

// What a submission took beyond its dispatches.
Times waits_of(const RegionProfile& region) {
    Times waits = region.submission;
    for (const RegionProfile::Dispatch& d : region.dispatches)
        for (size_t i = 0; i < waits.size(); i++) waits[i] = std::max(waits[i] - d.ms[i], 0.0);
    return waits;
}

json between(const char* type, const RegionProfile& region, const Times& ms,
             const json& dispatches) {
    json entry = {{"type", type}, {"name", region.layers[0]->name}, {"macs", 0}, {"on", "between"},
                  {"ms", ms},     {"dispatches", dispatches}};
    for (const char* key : {"stride", "pad", "dilation", "filter", "output", "cliff"})
        entry[key] = "";
    return entry;
}

// Of a layer that runs several times in a run, as in a loop, the sum in each.
Times by_run(const Times& times, size_t runs) {
    Times sums(runs);
    const size_t calls = times.size() / std::max<size_t>(runs, 1);
    for (size_t i = 0; i < calls * runs; i++) sums[i / calls] += times[i];
    return sums;
}

}  // namespace

void LayerProfile::add_region(const RegionProfile& region, json* layers) const {
    Times ms = region.upload;
    json moves = dispatches_of(region, RegionProfile::kUpload, &ms);
    layers->push_back(between("(upload)", region, ms, moves));
    for (size_t step = 0; step < region.layers.size(); step++) {
        const auto found = record_of_.find(region.layers[step]);
        const Record unseen = {region.layers[step], {}, {}, {}, ""};
        json layer = describe(found == record_of_.end() ? unseen : records_[found->second]);
        ms.assign(ms.size(), 0);
        layer["dispatches"] = dispatches_of(region, (int)step, &ms);
        layer["ms"] = ms, layer["on"] = "vulkan";
        layers->push_back(layer);
    }
    layers->push_back(between("(wait)", region, waits_of(region), json::array()));
    ms = region.download;
    moves = dispatches_of(region, RegionProfile::kDownload, &ms);
    layers->push_back(between("(download)", region, ms, moves));
}

json LayerProfile::to_json(const std::vector<RegionProfile>& regions, const Times& runs) const {
    json layers = json::array();
    std::vector<char> told(regions.size());
    for (const Record& record : records_) {
        bool on_device = false;
        for (size_t i = 0; i < regions.size(); i++) {
            const std::vector<const Layer*>& steps = regions[i].layers;
            if (std::find(steps.begin(), steps.end(), record.layer) == steps.end()) continue;
            on_device = true;
            if (!told[i]) add_region(regions[i], &layers);
            told[i] = 1;
        }
        if (on_device) continue;
        json layer = describe(record);
        layer["ms"] = by_run(record.times, runs.size()), layer["on"] = "cpu";
        layer["dispatches"] = json::array();
        layers.push_back(layer);
    }
    Times at(runs.size());
    for (json& layer : layers) {
        layer["start_ms"] = at;
        add(layer["ms"].get<Times>(), &at);
    }
    return {{"runs_ms", runs}, {"layers", layers}};
}

}  // namespace quoll
