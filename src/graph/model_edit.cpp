#include "graph/model_edit.h"

#include <algorithm>
#include <deque>

#include "graph/analysis.h"
#include "layer/control/split.h"

namespace quoll {

std::string unique_name(std::string name, std::set<std::string>* taken) {
    while (!taken->insert(name).second) name += "_";
    return name;
}

std::set<std::string> layer_names(const Model& model) {
    std::set<std::string> names;
    for (const ModelLayer& layer : model.layers) names.insert(layer.name);
    return names;
}

int keep_layers(Model* model, const std::set<int>& keep, const std::vector<std::string>& outputs) {
    std::deque<ModelLayer> left;
    for (size_t i = 0; i < model->layers.size(); i++)
        if (keep.count((int)i)) left.push_back(model->layers[i]);
    const int removed = (int)(model->layers.size() - left.size());
    model->layers.swap(left);
    std::set<std::string> unread;
    for (const std::string& blob : output_blobs(*model)) unread.insert(blob);
    for (const std::string& blob : outputs) unread.erase(blob);
    for (ModelLayer& layer : model->layers) {
        if (!layer.is<Split>()) continue;
        const auto gone = [&](const std::string& blob) { return unread.count(blob) != 0; };
        layer.outputs.erase(std::remove_if(layer.outputs.begin(), layer.outputs.end(), gone),
                            layer.outputs.end());
    }
    return removed;
}

}  // namespace quoll
