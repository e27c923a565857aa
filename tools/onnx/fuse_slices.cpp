// StridedSlices that together are all channels of a blob, as one Slice.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "graph/analysis.h"
#include "layer/tensor/stridedslice.h"
#include "onnx/fuse_layers.h"
#include "runtime/log_mute.h"

namespace quoll {
namespace onnx_tool {

namespace {

struct Channels : Range {
    size_t layer = 0;
};
typedef std::map<std::string, std::vector<Channels>> Cuts;  // by the blob that is cut

Cuts find_cuts(const Model& model) {
    Cuts cuts;
    for (size_t i = 0; i < model.layers.size(); i++) {
        Channels found;
        found.layer = i;
        if (cut_along(model.layers[i], 0, &found)) cuts[model.layers[i].inputs[0]].push_back(found);
    }
    for (auto at = cuts.begin(); at != cuts.end();)
        at = at->second.size() < 2 ? cuts.erase(at) : ++at;
    return cuts;
}

// In order of channels; whether each channel is in one of them.
bool covers(std::vector<Channels>* cuts, int channels) {
    std::sort(cuts->begin(), cuts->end(),
              [](const Channels& a, const Channels& b) { return a.begin < b.begin; });
    int next = 0;
    for (const Channels& cut : *cuts) {
        if (cut.begin != next) return false;
        next = cut.end;
    }
    return next == channels;
}

ModelLayer slice_of(const Model& model, const std::string& blob,
                    const std::vector<Channels>& cuts) {
    ModelLayer made;
    made.type = "Slice";
    std::vector<int> sizes;
    for (const Channels& cut : cuts) {
        made.outputs.push_back(model.layers[cut.layer].outputs[0]);
        sizes.push_back(cut.end - cut.begin);
    }
    made.name = made.outputs[0];
    made.inputs = {blob};
    made.set("slices", sizes);
    made.set("axis", 0);
    return made;
}

}  // namespace

bool cut_along(const ModelLayer& layer, int axis, Range* range) {
    const int kStarts = 0, kEnds = 1, kAxes = 2, kSteps = 3;
    const auto one = [&](int id, int def) {
        const Mat values = layer.params.get_ints(id, Mat());
        return values.empty() ? def : values.w == 1 ? ((const int*)values)[0] : -1;
    };
    if (!layer.is<StridedSlice>() || layer.inputs.size() != 1 || one(kAxes, 0) != axis ||
        one(kSteps, 1) != 1)
        return false;
    range->begin = one(kStarts, -1), range->end = one(kEnds, -1);
    return range->begin >= 0 && range->begin < range->end;
}

int join_slices(Model* model) {
    Cuts cuts = find_cuts(*model);
    if (cuts.empty()) return 0;
    BlobSizes sizes;
    const LogMute mute;
    infer_blob_sizes(*model, BlobSizes(), &sizes);
    std::map<size_t, ModelLayer> made;  // by the layer in whose place they are
    std::unordered_set<size_t> gone;
    for (auto& cut : cuts) {
        const auto size = sizes.find(cut.first);
        if (size == sizes.end() || size->second.dims < 3 || size->second.dtype != DType::f32 ||
            !covers(&cut.second, size->second.c))
            continue;
        size_t first = cut.second[0].layer;
        for (const Channels& channels : cut.second) {
            gone.insert(channels.layer);
            first = std::min(first, channels.layer);
        }
        made[first] = slice_of(*model, cut.first, cut.second);
    }
    if (made.empty()) return 0;
    std::deque<ModelLayer> all;
    for (size_t i = 0; i < model->layers.size(); i++) {
        const auto found = made.find(i);
        if (found != made.end()) all.push_back(std::move(found->second));
        if (!gone.count(i)) all.push_back(std::move(model->layers[i]));
    }
    model->layers.swap(all);
    return (int)made.size();
}

}  // namespace onnx_tool
}  // namespace quoll
